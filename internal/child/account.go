package child

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Account is the user that a child runs as.
type Account struct {
	uid, gid uint32
	groups   []uint32 // supplementary ones
	name     string   // "" if the system does not know the account
	home     string
}

// introduce sets the variables that an account has of its own. The values that this process has belong to another
// account.
func (a *Account) introduce(environment map[string]string) {
	if a == nil {
		return
	}
	delete(environment, "HOME")
	if a.name != "" {
		environment["HOME"], environment["USER"], environment["LOGNAME"] = a.home, a.name, a.name
	}
}

// CheckUser finds faults of a user that are the same on every machine.
func CheckUser(user string) error {
	if strings.ContainsAny(user, "\x00\n") {
		return errors.New("user must be a name, a uid, or uid:gid")
	}
	uid, _, err := ids(user)
	if err != nil {
		return err
	}
	if uid != nil && *uid == 0 || user == "root" {
		return errors.New("user must not be root: name an account that may do less")
	}
	return nil
}

// ids reads uid and uid:gid. For a name, both are nil.
func ids(user string) (uid, gid *uint32, err error) {
	first, second, both := strings.Cut(user, ":")
	uid, numeric := number(first)
	if !both {
		return uid, nil, nil
	}
	gid, also := number(second)
	if !numeric || !also {
		return nil, nil, fmt.Errorf("user must be a name, a uid, or uid:gid in figures, got %q", user)
	}
	return uid, gid, nil
}

// number reads an id. To the system the highest id means "none".
func number(text string) (*uint32, bool) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n == 1<<32-1 {
		return nil, false
	}
	id := uint32(n)
	return &id, true
}
