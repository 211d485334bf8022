package daemon

import (
	"fmt"
	"syscall"
)

// Undumpable keeps other processes of this user, such as the child of an exec sink, from reading the environment and
// the memory of this one through /proc: secrets are in both. It also prevents core dumps, and only root can attach a
// debugger. It does not change children: execve sets the mark anew.
func Undumpable() error {
	const setDumpable = 4 // PR_SET_DUMPABLE, prctl(2)
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setDumpable, 0, 0); errno != 0 {
		return fmt.Errorf("keep other processes from reading this one: %w", errno)
	}
	return nil
}
