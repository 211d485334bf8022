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

// The directory belongs to the programs' user, who may put a link anywhere in it at any time. If that is another user
// than ours, which needs root, this process writes nothing there. Instead a shell writes, as the user, with the
// user's rights.
const (
	writeScript  = `umask 077; cat >"$1"`
	appendScript = `umask 077; cat >>"$1"`
	copyScript   = `umask 022; cat >"$1"; chmod 755 "$1"`

	// startScript becomes the program, so that the process id that it notes for the guard is the program's. It writes
	// to its file descriptor 3 when the id is noted.
	startScript = `(umask 077; : >>"$1" && : >"pids/$$") || exit 126; echo >&3; log=$1; shift; exec "$@" >>"$log" 2>&1 3>&-`
)

// fileTimeout bounds one of these scripts.
const fileTimeout = time.Minute

// headTimeout bounds the reading of a file that should be short. It is long because the machine may be busy.
const headTimeout = 10 * time.Second

// WriteFile writes a file that only the programs' user (and root) can read and write.
func (d *Dir) WriteFile(name string, content []byte) error {
	return d.asUser(bytes.NewReader(content), writeScript, d.Path(name))
}

// AppendFile adds to the end of a file. If the file does not exist, it makes it.
func (d *Dir) AppendFile(name string, content []byte) error {
	return d.asUser(bytes.NewReader(content), appendScript, d.Path(name))
}

// Executable returns a path under which the programs' user can run one of our programs. As root that user is not us,
// and cannot look into the directory of a `go run`, so it gets a copy.
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

// Head returns the beginning of a file of the directory. It reads as the programs' user and for a bounded time,
// because the user may have put anything in its place. It returns "" if the file cannot be read.
func (d *Dir) Head(name string, bytes int) string {
	ctx, cancel := context.WithTimeout(context.Background(), headTimeout)
	defer cancel()
	text, err := d.Run(ctx, "head", "-c", strconv.Itoa(bytes), d.Path(name))
	if err != nil {
		return ""
	}
	return text
}

// checkPath refuses a path that mktemp did not make: another process of the same user may have forged it.
func checkPath(base, path string) error {
	name, found := strings.CutPrefix(path, filepath.Join(base, "throwaway-"))
	if !found || name == "" || strings.ContainsAny(name, "/.\n") {
		return fmt.Errorf("mktemp made %q, which is no directory of its own in %s", path, base)
	}
	return nil
}

// unlist removes an ended program from the guard's list: its process id may belong to another process from now on.
func (d *Dir) unlist(pid int) {
	ctx, cancel := context.WithTimeout(context.Background(), fileTimeout)
	defer cancel()
	_ = d.Command(ctx, "rm", "-f", d.Path("pids", strconv.Itoa(pid))).Run()
}

// lookPath finds a program, so that a missing one is an error of Start and not a line in a log.
func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("start %s: %w", name, err)
	}
	return path, nil
}
