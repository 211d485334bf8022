// Package file opens directories in the form of gocloud.dev/blob/fileblob as object stores of the daemon.
package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"gocloud.dev/blob/fileblob"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/bounded"
	"github.com/ordered-dispatcher/ordered-dispatcher/retention"
	"github.com/ordered-dispatcher/ordered-dispatcher/stores"
	"github.com/ordered-dispatcher/ordered-dispatcher/stores/buckets"
)

// parameters decide how a producer writes. The daemon reads, so they mean nothing here.
var parameters = []string{"create_dir", "dir_file_mode", "metadata", "no_tmp_dir"}

// Spec describes the kind to the daemon. Objects are as fileblob has them, which is not how claim.Dir has them. Files are
// as retention.Directory has them: fileblob does not wait for the disk.
func Spec() stores.Spec {
	return stores.Spec{Scheme: fileblob.Scheme, Example: "file:///srv/claims", Check: check, Open: open}
}

func check(u *url.URL) error {
	if u.Host != "" && u.Host != "localhost" || !strings.HasPrefix(u.Path, "/") {
		return errors.New("it is not an absolute path: write file:///srv/claims, with three slashes")
	}
	for _, name := range slices.Sorted(maps.Keys(u.Query())) {
		if !slices.Contains(parameters, name) {
			return fmt.Errorf("the parameter %s is not known here: the parameters of file:// are %s", name, strings.Join(parameters, ", "))
		}
	}
	return nil
}

// open makes no directory: one that is not there is an outage, as while it is not mounted.
func open(_ context.Context, u *url.URL) (stores.Opened, error) {
	bucket, err := fileblob.OpenBucket(u.Path, &fileblob.Options{NoTempDir: true})
	if err != nil {
		return stores.Opened{}, err
	}
	opened := buckets.Opened(bucket)
	opened.Objects = objects{opened.Objects, u.Path}
	opened.Files = retention.Directory(u.Path)
	opened.Reach = func(context.Context) error { return reach(u.Path) }
	return opened, nil
}

// objects reads the directory by itself. fileblob follows links to the outside. It also waits for the writer of a pipe, be it
// the object or the file with its attributes, and looks at no context meanwhile.
type objects struct {
	claim.Store
	dir string
}

// Get reads the object. A name of anything but a file is no object.
func (o objects) Get(_ context.Context, name string, limit int) ([]byte, error) {
	root, err := os.OpenRoot(o.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	content, err := bounded.In(root, name, limit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, claim.ErrMissing
	case errors.Is(err, bounded.ErrNoFile):
		return nil, claim.ErrAltered
	case errors.Is(err, bounded.ErrTooLarge):
		return nil, claim.ErrTooLarge
	}
	return content, err
}

// List lists the files of the directory. No object has a name with a slash.
func (o objects) List(ctx context.Context, each func(claim.Object) error) error {
	entries, err := os.ReadDir(o.dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !entry.Type().IsRegular() {
			continue
		}
		is, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			continue
		}
		if err != nil {
			return err
		}
		if err := each(claim.Object{Name: entry.Name(), At: is.ModTime(), Bytes: is.Size()}); err != nil {
			return err
		}
	}
	return nil
}

func reach(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	if _, err := dir.ReadDir(1); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
