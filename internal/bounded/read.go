// Package bounded reads files that a configuration or a record names. It bounds the size of each file and the time for
// reading it.
package bounded

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

const (
	// MaxBytes bounds a file.
	MaxBytes = 1 << 20
	// patience bounds how long a pipe may take: a command may write into it.
	patience = 30 * time.Second
)

// The errors of Read, File, In and ReadAll.
var (
	ErrTooLarge = errors.New("it is too large")
	ErrKind     = errors.New("it is neither a file nor a pipe")
	ErrSilent   = errors.New("it is a pipe, and what writes into it did not end in time")
	ErrNoFile   = errors.New("it is not a regular file")
)

// Read reads a file or a pipe of at most MaxBytes. It refuses a device, and a pipe that its writer does not close
// within 30 s.
func Read(path string) ([]byte, error) { return readWithin(path, patience) }

// File reads a regular file of at most MaxBytes. It is for files that are read again later, which a pipe cannot be.
// It never waits.
func File(path string) ([]byte, error) {
	// Opened in this way, a pipe does not wait for its writer.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w", path, ErrNoFile)
	}
	text, err := ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, nil
}

// In reads a regular file of at most limit bytes, in a directory that others write to. It never waits, and follows no link
// in the last part of the name.
func In(root *os.Root, name string, limit int) ([]byte, error) {
	named, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !named.Mode().IsRegular() {
		return nil, ErrNoFile
	}
	if named.Size() > int64(limit) {
		return nil, ErrTooLarge
	}
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if opened, err := file.Stat(); err != nil {
		return nil, err
	} else if !os.SameFile(named, opened) { // meanwhile the name may have become a link or a pipe
		return nil, ErrNoFile
	}
	content, err := io.ReadAll(io.LimitReader(file, int64(limit)+1))
	if len(content) > limit { // it has grown meanwhile
		return nil, ErrTooLarge
	}
	return content, err
}

// ReadAll reads at most MaxBytes.
func ReadAll(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("%w: it has more than %d bytes", ErrTooLarge, MaxBytes)
	}
	return text, nil
}

func readWithin(path string, patience time.Duration) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if kind := info.Mode().Type(); kind != 0 && kind != fs.ModeNamedPipe {
		return nil, ErrKind
	}
	type result struct {
		text []byte
		err  error
	}
	read := make(chan result, 1)
	// Opening a pipe waits for its writer, and this wait cannot be ended. The program ends instead, since it has no
	// configuration.
	go func() {
		text, err := readFile(path)
		read <- result{text, err}
	}()
	select {
	case r := <-read:
		return r.text, r.err
	case <-time.After(patience):
		return nil, ErrSilent
	}
}

func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return ReadAll(file)
}
