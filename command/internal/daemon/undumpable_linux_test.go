package daemon_test

import (
	"fmt"
	"os"
	osexec "os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
)

// In a process of its own: the mark is the whole process's.
func TestUndumpable_MarksTheProcessAndNotItsChildren(t *testing.T) {
	const getDumpable = 3 // PR_GET_DUMPABLE
	dumpable := func() string {
		n, _, _ := syscall.RawSyscall(syscall.SYS_PRCTL, getDumpable, 0, 0)
		return fmt.Sprint(n)
	}
	const generation = "ORDERED_DISPATCHER_TEST_GENERATION"
	run := func(of string) string {
		command := osexec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestUndumpable_MarksTheProcessAndNotItsChildren$")
		command.Env = append(os.Environ(), generation+"="+of)
		out, err := command.Output()
		require.NoError(t, err)
		return string(out)
	}
	switch os.Getenv(generation) {
	case "":
		require.Contains(t, run("parent"), "parent 0\nchild 1\n")
	case "parent":
		require.NoError(t, daemon.Undumpable())
		_, err := os.ReadFile("/proc/self/status") // as what measures memory does
		require.NoError(t, err)
		fmt.Println("parent", dumpable())
		fmt.Print(run("child"))
	default:
		fmt.Println("child", dumpable())
	}
}
