package broker

import (
	"context"
	"fmt"
	"os"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
)

// RabbitMQ is a running broker.
type RabbitMQ struct{ server }

// RabbitMQConfig describes how to start a broker. Zero values mean defaults.
type RabbitMQConfig struct {
	// Port is the port to listen on. 0: a free one.
	Port int
	// Settings returns more lines for rabbitmq.conf. dir is the broker's directory, for files that these lines need.
	Settings func(dir *throwaway.Dir) (string, error)
}

// StartRabbitMQ starts a broker with the users guest and RabbitMQUser. It takes a minute on a busy machine. ctx
// bounds it. The caller calls Close.
func StartRabbitMQ(ctx context.Context, c RabbitMQConfig) (*RabbitMQ, error) {
	program, err := find("rabbitmq-server", "rabbitmq-server")
	if err != nil {
		return nil, err
	}
	r := &RabbitMQ{server{name: "RabbitMQ", port: c.Port}}
	if err := r.open(ctx, func() error { return r.begin(ctx, program, c) }); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *RabbitMQ) begin(ctx context.Context, program string, c RabbitMQConfig) error {
	if err := r.configure(c); err != nil {
		return err
	}
	r.command = []string{"sh", r.dir.Path("env.sh"), script("rabbitmq-server", program)}
	if err := r.Start(ctx); err != nil {
		return err
	}
	// The broker accepts connections a moment before it accepts commands.
	if _, err := r.Control(ctx, "await_startup"); err != nil {
		return err
	}
	if _, err := r.Control(ctx, "add_user", RabbitMQUser, RabbitMQPassword); err != nil {
		return err
	}
	_, err := r.Control(ctx, "set_permissions", RabbitMQUser, ".*", ".*", ".*")
	return err
}

// A user whose password tests can look for in texts.
const (
	RabbitMQUser     = "dispatcher"
	RabbitMQPassword = "secret-password"
)

// configure writes the broker's files. With input allowed the script becomes the broker, so that a signal reaches the
// broker. Debian's wrapper of the program insists on root or its own user, so it runs the script that the wrapper
// calls.
func (r *RabbitMQ) configure(c RabbitMQConfig) error {
	distribution, err := throwaway.FreePort()
	if err != nil {
		return err
	}
	var more string
	if c.Settings != nil {
		if more, err = c.Settings(r.dir); err != nil {
			return err
		}
	}
	err = r.dir.WriteFile("rabbitmq.conf", fmt.Appendf(nil, `
listeners.tcp.1 = 127.0.0.1:%d
log.console = true
log.console.level = warning
log.file = false
max_message_size = 1000000
vm_memory_high_watermark.absolute = 1GB
disk_free_limit.absolute = 1MB
%s
`, r.port, more))
	if err != nil {
		return err
	}
	return r.dir.WriteFile("env.sh", fmt.Appendf(nil, `#!/bin/sh
export HOME=%[1]s RABBITMQ_CONFIG_FILE=%[1]s/rabbitmq.conf RABBITMQ_MNESIA_BASE=%[1]s/mnesia RABBITMQ_LOG_BASE=%[1]s/log
export RABBITMQ_ENABLED_PLUGINS_FILE=%[1]s/plugins RABBITMQ_PID_FILE=%[1]s/pid RABBITMQ_NODENAME=t%[2]d@localhost
export RABBITMQ_ALLOW_INPUT=1 RABBITMQ_CONF_ENV_FILE=/dev/null RABBITMQ_DIST_PORT=%[3]d ERL_EPMD_ADDRESS=127.0.0.1
export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-noinput +S 1:1 +sbwt none -kernel inet_dist_use_interface {127,0,0,1} -start_epmd false -erl_epmd_port %[3]d"
export RABBITMQ_CTL_ERL_ARGS="-start_epmd false -erl_epmd_port %[3]d -dist_listen false"
exec "$@"
`, r.dir.Path(), r.port, distribution))
}

// script returns the program that Debian's wrapper calls, if there is one.
func script(name, wrapper string) string {
	path := "/usr/lib/rabbitmq/bin/" + name
	if _, err := os.Stat(path); err == nil {
		return path
	}
	return wrapper
}

// URL returns an address for RabbitMQUser. by is a host and port that lead to the broker.
func (r *RabbitMQ) URL(by string) string {
	return fmt.Sprintf("amqp://%s:%s@%s/", RabbitMQUser, RabbitMQPassword, by)
}

// Control runs rabbitmqctl and returns its output.
func (r *RabbitMQ) Control(ctx context.Context, args ...string) (string, error) {
	return r.dir.Run(ctx, "sh", append([]string{r.dir.Path("env.sh"), script("rabbitmqctl", "rabbitmqctl")}, args...)...)
}
