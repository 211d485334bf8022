//go:build unix

package throwaway

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// account is the user that runs the programs. nil means the user of this process.
type account struct {
	name     string
	uid, gid uint32
}

// unprivileged picks the account: this process's own, unless it runs as root.
func unprivileged() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			return newAccount(u)
		}
	}
	return nil, errors.New(`PostgreSQL refuses to run as root, and there is neither a user "postgres" nor "nobody" to run it as; ` +
		`add one ("useradd --system postgres"), or run this as an ordinary user, or set DATABASE_URL to a running server`)
}

func newAccount(u *user.User) (*account, error) {
	uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return nil, fmt.Errorf("look up user %q: %w", u.Username, err)
	}
	return &account{name: u.Username, uid: uint32(uid), gid: uint32(gid)}, nil
}

// apply makes cmd run as the account, without root's supplementary groups and in a session of its own.
func (a *account) apply(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if a != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
}

func (a *account) String() string {
	if a == nil {
		return "this user"
	}
	return fmt.Sprintf("user %q", a.name)
}
