//go:build unix

package notify

import (
	"os"
	"syscall"
)

// ownGroup makes a child lead a session, as that of the exec sink: see there.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// killGroup ends a group at once. It ignores an error: then none of the group is left.
func killGroup(leader *os.Process) { _ = syscall.Kill(-leader.Pid, syscall.SIGKILL) }
