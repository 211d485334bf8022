package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
)

// loopback is how the kernel spells the addresses of the loopback.
var loopback = regexp.MustCompile(`^(0100007F|0000000000000000FFFF00000100007F|00000000000000000000000001000000):`)

// TestServices_ListenOnLoopbackAlone: a broker has more ports than the one for clients. Ports between its nodes
// take orders, too, and a service of the system that it starts, such as epmd, outlives it.
func TestServices_ListenOnLoopbackAlone(t *testing.T) {
	least := map[string]int{"rabbitmq": 2, "kafka": 3, "pubsub": 1, "nats": 1, "redis": 1}
	require.Len(t, services, len(least))
	for _, s := range services {
		t.Run(s.name, func(t *testing.T) {
			mark := rand.Text()
			t.Setenv("PATH", os.Getenv("PATH")+":/nowhere/"+mark) // all that is started here has it
			port, err := throwaway.FreePort()
			require.NoError(t, err)
			before := listening(t, "/proc/self")
			started, _, err := s.start(t.Context(), port)
			if errors.Is(err, broker.ErrMissing) && os.Getenv("CI") == "" {
				t.Skip(err)
			}
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, started.Close(context.Background())) })
			of := func(address string) bool { return strings.HasSuffix(address, fmt.Sprintf(":%04X", port)) }
			var all []string
			// The kernel's list may leave out a socket while others of this machine come and go.
			require.Eventually(t, func() bool {
				all = append(all, listening(t, "/proc/self")...)
				for _, process := range marked(t, mark) {
					all = append(all, listening(t, process)...)
				}
				slices.Sort(all)
				all = slices.DeleteFunc(slices.Compact(all), func(address string) bool { return slices.Contains(before, address) })
				return len(all) >= least[s.name] && slices.ContainsFunc(all, of)
			}, time.Minute, 100*time.Millisecond, s.name)
			for _, address := range all {
				require.Regexp(t, loopback, address)
			}
		})
	}
}

// marked are the other processes that have a mark in their environment.
func marked(t testing.TB, mark string) (all []string) {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, process := range processes {
		environment, _ := os.ReadFile(process + "/environ") // it may be gone
		if bytes.Contains(environment, []byte(mark)) && filepath.Base(process) != fmt.Sprint(os.Getpid()) {
			all = append(all, process)
		}
	}
	return all
}

// listening are the addresses that a process listens on, as the kernel spells them.
func listening(t testing.TB, process string) (all []string) {
	t.Helper()
	sockets := map[string]string{}
	for _, table := range []string{"/net/tcp", "/net/tcp6"} {
		text, _ := os.ReadFile(process + table) // there may be no IPv6
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) > 9 && fields[3] == "0A" {
				sockets[fmt.Sprintf("socket:[%s]", fields[9])] = fields[1]
			}
		}
	}
	files, _ := os.ReadDir(process + "/fd") // it may be gone
	for _, file := range files {
		target, _ := os.Readlink(filepath.Join(process, "fd", file.Name()))
		if address := sockets[target]; address != "" {
			all = append(all, address)
		}
	}
	return all
}
