//go:build !unix

package exec

import (
	"os"
	"syscall"
)

// On systems without process groups, only the child itself is ended.

func ownGroup(*account) *syscall.SysProcAttr { return nil }

func killGroup(leader *os.Process) { _ = leader.Kill() }

func askGroup(leader *os.Process) { _ = leader.Kill() }
