package claim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

// Dir is a store in a directory, which must exist. All producers and workers need the same one, as on a shared file
// system. Objects are in subdirectories by the first two digits of their names. Nothing outside of the directory is
// read or written, not even through links.
type Dir string

// in opens the directory for one operation. A directory that is not there, as while it is not mounted, is an outage.
func (d Dir) in(name string, do func(root *os.Root, file string) error) error {
	if !names.MatchString(name) {
		return ErrReference
	}
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return &unreachable{err}
	}
	defer root.Close()
	return do(root, path.Join(name[:2], name))
}

// unreachable is an error of the directory itself. It is not a missing object.
type unreachable struct{ error }

// Put writes the object, and returns when the disk has it.
func (d Dir) Put(_ context.Context, name string, content []byte) error {
	return d.in(name, func(root *os.Root, file string) error {
		if err := root.Mkdir(path.Dir(file), 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
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
		is, err := root.Lstat(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return ErrMissing
		case err != nil:
			return err
		case !is.Mode().IsRegular():
			return ErrAltered
		case is.Size() > int64(limit):
			return ErrTooLarge
		}
		f, err := root.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		content, err = io.ReadAll(io.LimitReader(f, int64(limit)+1))
		return err
	})
	return content, err
}

// List lists the objects.
func (d Dir) List(ctx context.Context, each func(Object) error) error {
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return err
	}
	defer root.Close()
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
		return nil
	})
}
