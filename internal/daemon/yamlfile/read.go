package yamlfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

const (
	// MaxBytes bounds a configuration.
	MaxBytes = 1 << 20
	// patience bounds how long a pipe may take: a command may write into it.
	patience = 30 * time.Second
)

// Errors of Read and ReadAll.
var (
	ErrTooLarge = errors.New("it is too large")
	ErrKind     = errors.New("it is neither a file nor a pipe")
	ErrSilent   = errors.New("it is a pipe, and what writes into it did not end in time")
)

// Read reads a file or a pipe of at most MaxBytes. A device is refused, and a pipe
// that is not closed by its writer within 30 s.
func Read(path string) ([]byte, error) { return readWithin(path, patience) }

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
	// To open a pipe waits for its writer, and nothing ends that wait. The program
	// ends instead, since it has no configuration.
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
