//go:build !unix

package exec

import (
	"os"
	"syscall"
)

// Where there are no process groups, the child alone is ended.

func ownGroup(*account) *syscall.SysProcAttr { return nil }

func killGroup(leader *os.Process) { _ = leader.Kill() }

func askGroup(leader *os.Process) { _ = leader.Kill() }
