//go:build !unix

package notify

import (
	"os"
	"syscall"
)

// On systems without process groups, only the child itself is ended.

func ownGroup() *syscall.SysProcAttr { return nil }

func killGroup(leader *os.Process) { _ = leader.Kill() }
