package throwaway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The directory belongs to the programs' user, who may put a link in any place at any time. So where that is another user
// than us, which only root has, we write nothing there: a shell does that, as the user, with the user's rights.
const (
	writeScript  = `umask 077; cat >"$1"`
	appendScript = `umask 077; cat >>"$1"`
	copyScript   = `umask 022; cat >"$1"; chmod 755 "$1"`

	// startScript becomes the program, so that the process id it notes for the guard is the program's. Its third file
	// hears when the id is noted.
	startScript = `(umask 077; : >>"$1" && : >"pids/$$") || exit 126; echo >&3; log=$1; shift; exec "$@" >>"$log" 2>&1 3>&-`
)

// fileTimeout bounds one of these.
const fileTimeout = time.Minute

// headTimeout bounds the reading of a file that should be short. It is long for a machine that is busy.
const headTimeout = 10 * time.Second

// WriteFile writes a file that only the programs' user (and root) can read and write.
func (d *Dir) WriteFile(name string, content []byte) error {
	return d.asUser(bytes.NewReader(content), writeScript, d.Path(name))
}

// AppendFile adds to the end of a file, and makes it if it is not there.
func (d *Dir) AppendFile(name string, content []byte) error {
	return d.asUser(bytes.NewReader(content), appendScript, d.Path(name))
}

// Executable returns a path under which the programs' user can run a program of ours: as root that is another user than
// us, who cannot look into the directory of a `go run`, so it gets a copy.
func (d *Dir) Executable(path string) (string, error) {
	if d.user == nil {
		return path, nil
	}
	program, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer program.Close()
	copied := d.Path(filepath.Base(path))
	return copied, d.asUser(program, copyScript, copied)
}

// asUser runs a script with one argument as the programs' user.
func (d *Dir) asUser(stdin io.Reader, script, path string) error {
	ctx, cancel := context.WithTimeout(context.Background(), fileTimeout)
	defer cancel()
	cmd := d.Command(ctx, "sh", "-ec", script, "sh", path)
	cmd.Stdin = stdin
	if _, err := output(cmd); err != nil {
		return fmt.Errorf("write %s as %s: %w", path, d.user, err)
	}
	return nil
}

// Tail returns the last lines of a file of the directory, for error messages; "" if it cannot be read.
func (d *Dir) Tail(name string, lines int) string {
	ctx, cancel := context.WithTimeout(context.Background(), fileTimeout)
	defer cancel()
	text, err := d.Run(ctx, "sh", "-c", `[ -r "$1" ] && tail -c 65536 "$1" | tail -n "$2"`, "sh", d.Path(name), strconv.Itoa(lines))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(text)
}

// Head returns the beginning of a file of the directory, read as the programs' user and not for long: the user
// may have put anything in its place. "" if it cannot be read.
func (d *Dir) Head(name string, bytes int) string {
	ctx, cancel := context.WithTimeout(context.Background(), headTimeout)
	defer cancel()
	text, err := d.Run(ctx, "head", "-c", strconv.Itoa(bytes), d.Path(name))
	if err != nil {
		return ""
	}
	return text
}

// checkPath refuses a path that mktemp did not make: another process of the same user may have put words in its mouth.
func checkPath(base, path string) error {
	name, found := strings.CutPrefix(path, filepath.Join(base, "throwaway-"))
	if !found || name == "" || strings.ContainsAny(name, "/.\n") {
		return fmt.Errorf("mktemp made %q, which is no directory of its own in %s", path, base)
	}
	return nil
}

// unlist takes an ended program off the guard's list: its process id may be another's from now on.
func (d *Dir) unlist(pid int) {
	ctx, cancel := context.WithTimeout(context.Background(), fileTimeout)
	defer cancel()
	_ = d.Command(ctx, "rm", "-f", d.Path("pids", strconv.Itoa(pid))).Run()
}

// lookPath finds a program, so that one that is missing is an error of Start and no line in a log.
func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("start %s: %w", name, err)
	}
	return path, nil
}
