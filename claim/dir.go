package claim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/bounded"
)

// Dir is a store in a directory, which Create makes. All producers and workers need the same one, as on a shared file
// system. Objects are in subdirectories by the first two digits of their names, and such a subdirectory is what makes a
// directory a store. Without one it may be a mount point where nothing is mounted. That is an outage for every method.
// Nothing outside of the directory is read or written, not even through links.
type Dir string

// firstShard is the subdirectory that Create makes.
const firstShard = "00"

// Create makes the directory, if it is not there, and makes it a store. Call it once, when the store is set up, and not
// whenever a program starts: on a mount point where nothing is mounted it would make another store. A second call
// changes nothing.
func (d Dir) Create() error {
	if err := os.MkdirAll(filepath.Join(string(d), firstShard), 0o750); err != nil {
		return fmt.Errorf("create the store: %w", err)
	}
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return fmt.Errorf("create the store: %w", err)
	}
	defer root.Close()
	return sync(root, ".")
}

// Check returns why the directory is no store, or nil.
func (d Dir) Check() error {
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return err
	}
	defer root.Close()
	return d.check(root)
}

// errNoStore proposes no new store. A reader would take its objects for lost, and no longer wait for the mount.
var errNoStore = errors.New("is no store, since it has no subdirectory of objects: mount what belongs there")

// check looks for a subdirectory of objects, in the directory that is open: meanwhile the name may get another one.
func (d Dir) check(root *os.Root) error {
	open, err := root.Open(".")
	if err != nil {
		return err
	}
	defer open.Close()
	for {
		entries, err := open.ReadDir(100)
		if slices.ContainsFunc(entries, isShard) {
			return nil
		}
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("the directory %s %w", d, errNoStore)
		}
		if err != nil {
			return err
		}
	}
}

var shards = regexp.MustCompile(`^[0-9a-f]{2}$`)

func isShard(entry fs.DirEntry) bool { return entry.IsDir() && shards.MatchString(entry.Name()) }

// in opens the directory for one operation. A directory that is not there, as while it is not mounted, is an outage.
func (d Dir) in(name string, do func(root *os.Root, file string) error) error {
	if !names.MatchString(name) {
		return ErrReference
	}
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return err
	}
	defer root.Close()
	return do(root, path.Join(name[:2], name))
}

// Put writes the object, and returns when the disk has it.
func (d Dir) Put(_ context.Context, name string, content []byte) error {
	return d.in(name, func(root *os.Root, file string) error {
		if err := d.shard(root, path.Dir(file)); err != nil {
			return err
		}
		f, err := root.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
		if err != nil {
			return err
		}
		_, err = f.Write(content)
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return errors.Join(err, root.Remove(file))
		}
		return errors.Join(sync(root, path.Dir(file)), sync(root, "."))
	})
}

// shard makes a subdirectory, if it is missing.
func (d Dir) shard(root *os.Root, name string) error {
	if _, err := root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := d.check(root); errors.Is(err, errNoStore) {
		return fmt.Errorf("%w; if there never was a store, make one: mkdir %s", err, filepath.Join(string(d), firstShard))
	} else if err != nil {
		return err
	}
	if err := root.Mkdir(name, 0o750); !errors.Is(err, fs.ErrExist) { // another writer may have made it
		return err
	}
	return nil
}

// sync makes the names in a directory durable.
func sync(root *os.Root, dir string) error {
	f, err := root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Get reads the object. A name of anything but a file is no object.
func (d Dir) Get(_ context.Context, name string, limit int) (content []byte, err error) {
	err = d.in(name, func(root *os.Root, file string) error {
		content, err = bounded.In(root, file, limit)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return cmp.Or(d.check(root), ErrMissing)
		case errors.Is(err, bounded.ErrNoFile), isOutside(root, path.Dir(file), err):
			return ErrAltered
		case errors.Is(err, bounded.ErrTooLarge):
			return ErrTooLarge
		}
		return err
	})
	return content, err
}

// isOutside reports whether a subdirectory is a link to the outside, and err comes from that. os.Root then makes no system
// call, so none fails.
func isOutside(root *os.Root, shard string, err error) bool {
	if err == nil || errors.As(err, new(syscall.Errno)) {
		return false
	}
	is, err := root.Lstat(shard)
	return err == nil && is.Mode().Type() == fs.ModeSymlink
}

// List lists the objects.
func (d Dir) List(ctx context.Context, each func(Object) error) error {
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return err
	}
	defer root.Close()
	if err := d.check(root); err != nil {
		return err
	}
	return fs.WalkDir(root.FS(), ".", func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		is, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) { // removed meanwhile
			return nil
		}
		if err != nil {
			return fmt.Errorf("list %s: %w", d, err)
		}
		return each(Object{Name: entry.Name(), At: is.ModTime(), Bytes: is.Size()})
	})
}

// Delete removes the object.
func (d Dir) Delete(_ context.Context, name string) error {
	return d.in(name, func(root *os.Root, file string) error {
		if err := root.Remove(file); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return d.check(root)
	})
}
