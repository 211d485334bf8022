package daemon

import (
	"slices"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgurl"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// namedFiles are the files that a configuration names.
type namedFiles struct {
	secret  []string // their text is a secret
	trusted []string // their text decides what is run, or whom the program trusts
}

func (f *namedFiles) addSecret(paths ...string)  { f.secret = append(f.secret, paths...) }
func (f *namedFiles) addTrusted(paths ...string) { f.trusted = append(f.trusted, paths...) }

// all returns the files, each once.
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
	secret, trusted := pgurl.FilesByUse(connection)
	f.addSecret(secret...)
	f.addTrusted(trusted...)
}

// addSink adds the files of a sink that neither a reference nor a tls setting names.
func (f *namedFiles) addSink(sink Sink) {
	if filed, ok := sink.Config.(sinks.Filed); ok {
		secret, trusted := filed.Files()
		f.addSecret(secret...)
		f.addTrusted(trusted...)
	}
}
