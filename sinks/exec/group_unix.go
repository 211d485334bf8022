//go:build unix

package exec

import (
	"os"
	"syscall"
)

// ownGroup has a child lead a session, and so a process group: its own children end with
// it, what a terminal sends to this process does not reach it, and it has no terminal. In
// ours it could type commands into the shell that started us.
func ownGroup(a *account) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Credential: a.credential()}
}

// killGroup ends a group at once. None of it is left to be told an error.
func killGroup(leader *os.Process) { _ = syscall.Kill(-leader.Pid, syscall.SIGKILL) }

// askGroup asks a group to end.
func askGroup(leader *os.Process) { _ = syscall.Kill(-leader.Pid, syscall.SIGTERM) }
