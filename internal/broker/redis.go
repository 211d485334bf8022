package broker

import (
	"context"
	"fmt"
	"strconv"
)

// Redis is a running server that writes everything to its disk before it acknowledges.
type Redis struct{ server }

// RedisPassword is one that tests can look for in texts.
const RedisPassword = "secret-password"

// StartRedis starts a server on a port of the loopback. ctx bounds the start. The caller calls Close.
func StartRedis(ctx context.Context, port int) (*Redis, error) {
	program, err := find("redis-server", "redis-server")
	if err != nil {
		return nil, err
	}
	r := &Redis{server{name: "redis-server", port: port}}
	err = r.open(ctx, func() error {
		// Without a title of its own, the process keeps the environment by which tests find it.
		r.command = []string{program, "--port", strconv.Itoa(r.port), "--bind", "127.0.0.1", "--dir", r.dir.Path(),
			"--requirepass", RedisPassword, "--set-proc-title", "no", "--appendonly", "yes", "--appendfsync", "always"}
		return r.Start(ctx)
	})
	if err != nil {
		return nil, err
	}
	return r, nil
}

// URL returns an address with the password.
func (r *Redis) URL() string { return fmt.Sprintf("redis://:%s@%s/0", RedisPassword, r.Addr()) }
