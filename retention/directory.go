package retention

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Directory is a Shelf in the file system. A call of a file system that hangs, such as one that is frozen, or whose server
// is away, cannot be ended. So a method that returns with its context may leave such a call behind. While it hangs,
// methods for the same path return an error at once.
type Directory string

const (
	writing   = ".writing-"    // begins the name of a file until it is whole
	abandoned = 24 * time.Hour // a pass that writes has some seconds, so one that was killed has left an older file
)

// hanging has the calls that were left behind, each by its Directory. It is one for the whole process, as the threads are
// that these calls hold: without it, each pass would leave another one.
var hanging sync.Map

// hangsError reports a directory in which a call hangs. Its text is the same for the call itself and for those that are
// refused meanwhile, so the log has it once.
type hangsError struct{ directory Directory }

func (e *hangsError) Error() string {
	return fmt.Sprintf("the file system of %s hangs: nothing is written there until it answers", visible.Line(string(e.directory)))
}

// call calls f, which uses the file system, and does not wait for it longer than ctx.
func call[T any](ctx context.Context, d Directory, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if _, hangs := hanging.Load(d); hangs {
		return none, &hangsError{d}
	}
	done := make(chan result, 1)
	go func() {
		value, err := f()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		hanging.Store(d, done)
		go func() {
			<-done
			hanging.CompareAndDelete(d, done) // another call may have been left behind since
		}()
		if errors.Is(ctx.Err(), context.Canceled) {
			return none, ctx.Err() // nobody waits for it any more
		}
		return none, &hangsError{d}
	}
}

// Put writes a file under another name, has it on the disk, and then gives it its name. It removes files that passes which
// were killed have left, of all tables: they share the directory. Should one be alive after all, it fails, and a later pass
// writes the file again.
func (d Directory) Put(ctx context.Context, name string, content []byte) error {
	_, err := call(ctx, d, func() (struct{}, error) { return struct{}{}, d.put(name, content) })
	return err
}

func (d Directory) put(name string, content []byte) error {
	d.sweep()
	temporary, err := os.CreateTemp(string(d), writing+"*")
	if err != nil {
		return d.unnamed(err)
	}
	defer os.Remove(temporary.Name()) // gone by then, unless something failed
	_, err = temporary.Write(content)
	if err = errors.Join(d.unnamed(err), d.unnamed(temporary.Sync()), d.unnamed(temporary.Close())); err != nil {
		return err
	}
	if err := os.Rename(temporary.Name(), filepath.Join(string(d), name)); err != nil {
		return d.unnamed(err)
	}
	return d.sync()
}

// unnamed is an error without the name of the file. A temporary file has a random one, and the log would take each
// attempt for another problem.
func (d Directory) unnamed(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return &fs.PathError{Op: path.Op, Path: string(d), Err: path.Err}
	case errors.As(err, &link):
		return &fs.PathError{Op: link.Op, Path: string(d), Err: link.Err}
	default:
		return err
	}
}

// sweep removes files that were not finished. One that another user owns may stay: it takes nothing but room.
func (d Directory) sweep() {
	names, _ := d.list(writing)
	for _, name := range names {
		name = filepath.Join(string(d), name)
		if is, err := os.Lstat(name); err == nil && time.Since(is.ModTime()) > abandoned {
			_ = os.Remove(name)
		}
	}
}

// sync has the names of the directory on the disk.
func (d Directory) sync() error {
	dir, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// List reads the directory.
func (d Directory) List(ctx context.Context, prefix string) ([]string, error) {
	return call(ctx, d, func() ([]string, error) { return d.list(prefix) })
}

func (d Directory) list(prefix string) (names []string, err error) {
	entries, err := os.ReadDir(string(d))
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), prefix) {
			names = append(names, entry.Name())
		}
	}
	return names, err
}

// Remove removes a file.
func (d Directory) Remove(ctx context.Context, name string) error {
	_, err := call(ctx, d, func() (struct{}, error) { return struct{}{}, d.remove(name) })
	return err
}

func (d Directory) remove(name string) error {
	if err := os.Remove(filepath.Join(string(d), name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
