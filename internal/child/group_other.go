//go:build !unix

package child

import (
	"os"
	"syscall"
)

// On systems without process groups, only the child itself is ended.

func ownGroup(*Account) *syscall.SysProcAttr { return nil }

func killGroup(leader *os.Process) { _ = leader.Kill() }

func askGroup(leader *os.Process) { _ = leader.Kill() }
