package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

const suffix = ".jsonl"

// Log is the file of one actor. It is safe for concurrent use.
type Log struct {
	mu      sync.Mutex
	file    *os.File
	buffer  *bufio.Writer
	encoder *json.Encoder
	err     error
}

// Create makes the file of an actor. The caller closes it.
func Create(dir, actor string) (*Log, error) {
	file, err := os.Create(filepath.Join(dir, actor+suffix))
	if err != nil {
		return nil, fmt.Errorf("note the history of %s: %w", actor, err)
	}
	l := &Log{file: file, buffer: bufio.NewWriter(file)}
	l.encoder = json.NewEncoder(l.buffer)
	return l, nil
}

// Note adds an entry. An error is kept for Close.
func (l *Log) Note(entry any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.encoder.Encode(entry); l.err == nil {
		l.err = err
	}
}

// Close writes out what was noted, and returns the first error there was.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.err, l.buffer.Flush(), l.file.Close())
}

// WriteAll notes all entries of an actor in a file of its own.
func WriteAll[T any](dir, actor string, entries []T) error {
	l, err := Create(dir, actor)
	if err != nil {
		return err
	}
	for i := range entries {
		l.Note(entries[i])
	}
	return l.Close()
}
