package throwaway

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// given are the ports that FreePort has returned: a server that starts slowly does not listen on its port for seconds.
var given sync.Map

// FreePort finds a free TCP port on 127.0.0.1. The port is below the range from which systems take the ports of
// outgoing connections. In that range, a client that keeps dialling a stopped server ends up connected to itself, and
// so blocks the server's return. No port is returned twice in a process. Another process may take it before the caller
// does.
func FreePort() (int, error) {
	const low, high, tries = 15_000, 32_000, 50
	for range tries {
		port := low + rand.IntN(high-low)
		if _, before := given.LoadOrStore(port, true); !before && PortFree(port) {
			return port, nil
		}
	}
	return 0, errors.New("find a free port on 127.0.0.1: none in " + strconv.Itoa(tries) + " tries; does this machine let processes listen on loopback?")
}

// PortFree reports whether a process could listen on this port of 127.0.0.1 just now.
func PortFree(port int) bool {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
