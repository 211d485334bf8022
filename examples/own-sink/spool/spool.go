// Package spool is a sink that makes a file of each record.
package spool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// Config is what stands below `spool` in the configuration file.
type Config struct {
	// Dir is the directory of the files. It must exist, and no one else should be able to write to it.
	Dir string `knob:"dir" need:"dir: /var/spool/orders"`
}

// Spec registers the sink with command.Main.
func Spec() sinks.Spec {
	return sinks.Spec{Name: "spool", New: func() sinks.Config { return &Config{} }}
}

// Validate reports what is wrong without a look at the directory.
func (c Config) Validate() error {
	if !filepath.IsAbs(c.Dir) {
		return errors.New("dir must be an absolute path: the daemon may start anywhere")
	}
	return nil
}

// Settings decide where the records go.
func (c Config) Settings() map[string]string { return map[string]string{"dir": c.Dir} }

// Owned keeps two processes out of one directory: the names of their files would be the same numbers.
func (c Config) Owned(string) (what, fix string) {
	return "directory " + filepath.Clean(c.Dir), "give each process a dir of its own"
}

// Open makes the sink.
func (c Config) Open(sinks.Environment) (sinks.Opened, error) {
	return sinks.Opened{Each: sink(c)}, nil
}

type sink Config

// Deliver returns once the record is on the disk. A record that comes again has the same sequence, so it replaces its
// own file.
func (s sink) Deliver(_ context.Context, d processor.Delivery) error {
	name := filepath.Join(s.Dir, fmt.Sprintf("%020d", d.Sequence))
	if err := write(name+".part", d.Payload); err != nil {
		return err
	}
	if err := os.Rename(name+".part", name); err != nil {
		return err
	}
	return sync(s.Dir)
}

// write makes a new file that only this user can read. A file or a link that is there is removed, and not followed.
func write(name string, payload []byte) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(payload)
	return errors.Join(err, file.Sync(), file.Close())
}

// sync makes a new name in a directory survive a crash.
func sync(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
