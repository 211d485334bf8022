package broker_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
)

// TestStartRabbitMQ_ListensOnLoopbackAlone: its distribution port gives orders to
// the broker, too.
func TestStartRabbitMQ_ListensOnLoopbackAlone(t *testing.T) {
	r, err := broker.StartRabbitMQ(t.Context(), broker.RabbitMQConfig{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close(context.Background())) })
	address, err := net.ResolveTCPAddr("tcp", r.Addr())
	require.NoError(t, err)
	all := listenersBeside(t, address.Port)
	require.GreaterOrEqual(t, len(all), 2, "clients and the distribution")
	for _, address := range all {
		require.Regexp(t, loopback, address)
	}
}

// loopback is how the kernel spells the addresses of the IPv4 loopback.
var loopback = regexp.MustCompile(`^(0100007F|0000000000000000FFFF00000100007F):`)

// listeners are the addresses that are listened on, by their sockets, as a process sees them.
func listeners(t testing.TB, process string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, table := range []string{"/net/tcp", "/net/tcp6"} {
		text, err := os.ReadFile(process + table)
		if err != nil {
			continue // no IPv6 here
		}
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) > 9 && fields[3] == "0A" {
				all[fmt.Sprintf("socket:[%s]", fields[9])] = fields[1]
			}
		}
	}
	return all
}

// listenersBeside are all addresses that the process listens on which listens on a port.
func listenersBeside(t testing.TB, port int) []string {
	t.Helper()
	all := listeners(t, "/proc/self")
	processes, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, process := range processes {
		var own []string
		found := false
		files, _ := os.ReadDir(process + "/fd") // it may be gone
		for _, file := range files {
			target, _ := os.Readlink(filepath.Join(process, "fd", file.Name()))
			if address := all[target]; address != "" {
				own = append(own, address)
				found = found || strings.HasSuffix(address, fmt.Sprintf(":%04X", port))
			}
		}
		if found {
			return own
		}
	}
	require.FailNow(t, "no process of ours listens there")
	return nil
}
