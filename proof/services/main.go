// Command services runs what the examples of docs/sinks deliver to, on the ports
// that these systems are known by, until it is interrupted. What listens there
// already is left alone.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"cloud.google.com/go/pubsub/v2/pstest"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
)

// running is a service that was started here.
type running interface {
	Close(ctx context.Context) error
}

// service is one that can be started.
type service struct {
	name string
	port int
	// start starts it, and says how to reach it.
	start func(ctx context.Context, port int) (s running, reach string, err error)
}

var services = []service{
	{"rabbitmq", 5672, startRabbitMQ},
	{"kafka", 9092, startKafka},
	{"pubsub", 8085, startPubSub},
	{"nats", 4222, startNATS},
	{"redis", 6379, startRedis},
}

func startRabbitMQ(ctx context.Context, port int) (running, string, error) {
	r, err := broker.StartRabbitMQ(ctx, broker.RabbitMQConfig{Port: port})
	if err != nil {
		return nil, "", err
	}
	return r, r.URL(r.Addr()), nil
}

func startKafka(ctx context.Context, port int) (running, string, error) {
	k, err := broker.StartKafka(ctx, broker.KafkaConfig{Port: port})
	if err != nil {
		return nil, "", err
	}
	return k, k.Addr(), nil
}

// startPubSub starts the fake of Google's own tests, in this process.
func startPubSub(_ context.Context, port int) (running, string, error) {
	s := pstest.NewServerWithPort(port)
	return inProcess{s}, "PUBSUB_EMULATOR_HOST=" + s.Addr, nil
}

// inProcess is a server of this process.
type inProcess struct{ io.Closer }

// Close closes it.
func (p inProcess) Close(context.Context) error { return p.Closer.Close() }

func startNATS(ctx context.Context, port int) (running, string, error) {
	n, err := broker.StartNATS(ctx, broker.NATSConfig{Port: port})
	if err != nil {
		return nil, "", err
	}
	return n, n.URL(n.Addr()), nil
}

func startRedis(ctx context.Context, port int) (running, string, error) {
	r, err := broker.StartRedis(ctx, port)
	if err != nil {
		return nil, "", err
	}
	return r, r.URL(), nil
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, services, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "services:", err)
		os.Exit(1)
	}
}

const closeTimeout = time.Minute

// run starts what does not run yet, waits for the end of ctx, and closes what it
// started. One that cannot be started is an error at the end: the others run.
func run(ctx context.Context, wanted []service, w io.Writer) error {
	var started []running
	var faults error
	for _, s := range wanted {
		if !throwaway.PortFree(s.port) {
			fmt.Fprintf(w, "%-10s something listens on port %d already: left alone\n", s.name, s.port)
			continue
		}
		r, reach, err := s.start(ctx, s.port)
		if err != nil {
			faults = errors.Join(faults, fmt.Errorf("%s: %w", s.name, err))
			fmt.Fprintf(w, "%-10s not started: %v\n", s.name, err)
			continue
		}
		started = append(started, r)
		fmt.Fprintf(w, "%-10s %s\n", s.name, reach)
	}
	if len(started) > 0 {
		fmt.Fprintln(w, "running until interrupted")
		<-ctx.Done()
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	for _, r := range started {
		faults = errors.Join(faults, r.Close(ctx))
	}
	return faults
}
