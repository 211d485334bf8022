//go:build unix

package child

import (
	"os"
	"syscall"
)

// ownGroup makes a child lead a session, and so a process group. Its own children end with it, signals of this
// process's terminal do not reach it, and it has no terminal. In our session it could type commands into the shell
// that started us.
func ownGroup(a *Account) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Credential: a.credential()}
}

// killGroup ends a group at once. It ignores an error: then none of the group is left.
func killGroup(leader *os.Process) { _ = syscall.Kill(-leader.Pid, syscall.SIGKILL) }

// askGroup asks a group to end.
func askGroup(leader *os.Process) { _ = syscall.Kill(-leader.Pid, syscall.SIGTERM) }
