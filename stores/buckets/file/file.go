// Package file opens directories in the form of gocloud.dev/blob/fileblob as object stores of the daemon.
package file

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"gocloud.dev/blob/fileblob"

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
	opened.Files = retention.Directory(u.Path)
	return opened, nil
}
