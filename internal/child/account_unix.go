//go:build unix

package child

import (
	"fmt"
	"os"
	osuser "os/user"
	"strconv"
	"syscall"
)

// AccountOf looks up a user (a name, a uid or uid:gid) for a process with an effective uid. nil: the child runs as the
// user of this process.
func AccountOf(user string, euid int) (*Account, error) {
	if user == "" {
		return nil, nil
	}
	// CAP_SETUID does not suffice: the system takes capabilities from a child only if its parent was root.
	if euid != 0 {
		return nil, fmt.Errorf("user %q needs ordered-dispatcher to run as root, and it runs as uid %d: run it as root, or remove user", user, euid)
	}
	uid, gid, err := ids(user)
	if err != nil {
		return nil, err
	}
	if gid != nil {
		return &Account{uid: *uid, gid: *gid}, nil
	}
	found, err := osuser.Lookup(user)
	if uid != nil {
		found, err = osuser.LookupId(user)
	}
	if err != nil {
		return nil, fmt.Errorf("user %q is not an account of this machine: make the account, or write uid:gid (%w)", user, err)
	}
	return known(found)
}

// known is an account that the system knows.
func known(found *osuser.User) (*Account, error) {
	all, err := found.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("read the groups of user %q: %w", found.Username, err)
	}
	a := &Account{name: found.Username, home: found.HomeDir}
	for _, text := range append([]string{found.Uid, found.Gid}, all...) {
		id, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("read the ids of user %q: %w", found.Username, err)
		}
		a.groups = append(a.groups, uint32(id))
	}
	a.uid, a.gid, a.groups = a.groups[0], a.groups[1], a.groups[2:]
	if a.uid == 0 {
		return nil, fmt.Errorf("user %q must not be root: name an account that may do less", found.Username)
	}
	return a, nil
}

// credential makes the system change the user between fork and exec. With the user, the child loses every capability
// and every group of this process.
func (a *Account) credential() *syscall.Credential {
	if a == nil {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid, Groups: a.groups}
}

// give lets the child open its pipes by name, as in "echo x >/dev/stderr". Not every system can change the owner of a
// pipe; there the child has the pipes unchanged.
func (a *Account) give(files [3]*os.File) {
	if a == nil {
		return
	}
	for _, f := range files {
		_ = f.Chown(int(a.uid), int(a.gid))
	}
}
