// Command withrabbitmq runs a command with AMQP_URL set to a throw-away RabbitMQ that ends with the command:
//
//	go run ./internal/brokertest/withrabbitmq go run ./examples/product-events
//
// If AMQP_URL is set already, that broker is used. The exit status is the command's.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest/child"
)

const exitUsage = 2

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: withrabbitmq COMMAND [ARGUMENT...]")
		os.Exit(exitUsage)
	}
	status, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "withrabbitmq:", err)
	}
	os.Exit(status)
}

func run(command []string) (status int, err error) {
	if os.Getenv("AMQP_URL") != "" {
		return child.Run(command)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	rabbit, err := broker.StartRabbitMQ(ctx, broker.RabbitMQConfig{})
	cancel()
	if err != nil {
		return child.Failed, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if closeErr := rabbit.Close(ctx); closeErr != nil {
			status, err = max(status, child.Failed), errors.Join(err, closeErr)
		}
	}()
	if err := os.Setenv("AMQP_URL", rabbit.URL(rabbit.Addr())); err != nil {
		return child.Failed, err
	}
	return child.Run(command)
}
