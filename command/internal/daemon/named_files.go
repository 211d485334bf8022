package daemon

import (
	"cmp"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgurl"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/exec"
)

// namedFiles are those that a configuration names.
type namedFiles struct {
	secret  []string // their text is a secret
	trusted []string // their text decides what is run, or who is trusted
}

func (f *namedFiles) addSecret(paths ...string)  { f.secret = append(f.secret, paths...) }
func (f *namedFiles) addTrusted(paths ...string) { f.trusted = append(f.trusted, paths...) }

// all are the files, each once.
func (f *namedFiles) all() (all []string) {
	for _, path := range slices.Concat(f.secret, f.trusted) {
		if path != "" && !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	return all
}

// addDatabase adds the files of a connection string.
func (f *namedFiles) addDatabase(connection string) {
	if connection == "" {
		return
	}
	files := pgurl.Files(connection)
	f.addSecret(files["sslkey"], files["passfile"])
	f.addTrusted(files["sslcert"], files["sslrootcert"], files["servicefile"])
}

// addSink adds those of a sink that no reference and no tls names.
func (f *namedFiles) addSink(sink Sink) {
	switch sink := sink.(type) {
	case ExecSink:
		f.addTrusted(programs(sink.Config)...)
	case RemoteSQLSink:
		f.addDatabase(sink.Config.URL)
	case NATSSink:
		f.addSecret(sink.Config.LoginFile())
	case PubSubSink:
		f.addSecret(cmp.Or(sink.Config.Credentials, os.Getenv("GOOGLE_APPLICATION_CREDENTIALS")))
	}
}

// programs are the program of a command and the first of its arguments that is a file: what it
// interprets, if it is an interpreter.
func programs(c exec.Config) (all []string) {
	at := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(c.Dir, path)
	}
	program := c.Command[0]
	if !strings.ContainsRune(program, filepath.Separator) {
		program, _ = osexec.LookPath(program)
	}
	if program != "" {
		all = append(all, at(program))
	}
	for _, argument := range c.Command[1:] {
		if info, err := os.Stat(at(argument)); err == nil && info.Mode().IsRegular() {
			return append(all, at(argument))
		}
	}
	return all
}
