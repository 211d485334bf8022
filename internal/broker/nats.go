package broker

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// NATS is a running server with JetStream.
type NATS struct{ server }

// natsServer is the tool of sinks/nats/go.mod, which is built when it is needed.
const natsServer = "github.com/nats-io/nats-server/v2"

// A user whose password tests can look for in texts.
const (
	NATSUser     = "dispatcher"
	NATSPassword = "secret-password"
)

// NATSConfig describes how to start a server. Zero values mean defaults.
type NATSConfig struct {
	// Port is the port to listen on. 0: a free one.
	Port int
}

// StartNATS builds the server, with the go command and the module of the current directory. It starts the server with
// NATSUser as its only user. ctx bounds both. The caller calls Close.
func StartNATS(ctx context.Context, c NATSConfig) (*NATS, error) {
	program, err := buildNATS(ctx)
	if err != nil {
		return nil, err
	}
	n := &NATS{server{name: "nats-server", port: c.Port}}
	if err := n.open(ctx, func() error { return n.begin(ctx, program) }); err != nil {
		return nil, err
	}
	return n, nil
}

// buildNATS returns the path of the server in the build cache of the go command.
func buildNATS(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "tool", "-n", natsServer).Output()
	if err != nil {
		text := ""
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			text = string(exit.Stderr)
		}
		return "", fmt.Errorf("build nats-server: %w: %s", err, text)
	}
	return strings.TrimSpace(string(out)), nil
}

func (n *NATS) begin(ctx context.Context, program string) error {
	program, err := n.dir.Executable(program)
	if err != nil {
		return err
	}
	err = n.dir.WriteFile("nats.conf", fmt.Appendf(nil, `
listen: %q
jetstream: {store_dir: %q}
authorization: {user: %q, password: %q}
`, n.Addr(), n.dir.Path("store"), NATSUser, NATSPassword))
	if err != nil {
		return err
	}
	n.command = []string{program, "-c", n.dir.Path("nats.conf")}
	return n.Start(ctx)
}

// URL returns an address for NATSUser. by is a host and port that lead to the server.
func (n *NATS) URL(by string) string {
	return fmt.Sprintf("nats://%s:%s@%s", NATSUser, NATSPassword, by)
}

// Snapshot copies the server's files. Call it after Kill.
func (n *NATS) Snapshot(ctx context.Context) error { return n.copyStore(ctx, "store", "snapshot") }

// PutBack replaces the server's files with those of the snapshot. Call it after Kill.
func (n *NATS) PutBack(ctx context.Context) error { return n.copyStore(ctx, "snapshot", "store") }

func (n *NATS) copyStore(ctx context.Context, from, to string) error {
	_, err := n.dir.Run(ctx, "sh", "-ec", `rm -rf "$2"; cp -Rp "$1" "$2"`, "sh", n.dir.Path(from), n.dir.Path(to))
	return err
}
