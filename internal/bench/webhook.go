package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
)

// measureWebhook holds deliveries to a receiver that answers at once against requests without a dispatcher. The
// receiver is another process, so that its work is not counted as the sender's.
func measureWebhook(ctx context.Context, b *bench) (rows []row, err error) {
	records, err := b.shared(ctx)
	if err != nil {
		return nil, err
	}
	url, stop, err := startReceiver(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()

	const often, seldom = 1, 50
	results, err := b.alternate(ctx,
		b.deliveries(url, records.beforeLast, records.last, often),
		b.deliveries(url, records.beforeMany, records.many, seldom),
		contestant{"bare POST", func(ctx context.Context) (float64, error) { return post(ctx, url, records.many) }})
	if err != nil {
		return nil, err
	}
	for i, checkpoint := range []int{often, seldom} {
		rows = append(rows, row{
			name:   "webhook",
			what:   fmt.Sprintf("webhook, checkpoint %d : sequential bare POSTs of the same body", checkpoint),
			value:  ratio(results[i], results[2]),
			target: []target{{}, {0.85, atLeast}}[i],
			figures: fmt.Sprintf("%s : %s a second, the receiver in a process of its own",
				figure(spreadOf(results[i]).median), figure(spreadOf(results[2]).median)),
		})
	}
	return rows, nil
}

// deliveries is the dispatcher with the webhook sink.
func (b *bench) deliveries(url string, start cursor.Position, n, checkpoint int) contestant {
	return contestant{fmt.Sprintf("webhook, checkpoint %d", checkpoint), func(ctx context.Context) (float64, error) {
		sink, err := webhook.New(webhook.Config{URL: url})
		if err != nil {
			return 0, err
		}
		done := 0
		counting := processor.SinkFunc(func(ctx context.Context, d processor.Delivery) error {
			done++
			return sink.Deliver(ctx, d)
		})
		delivered := func() int { return done }
		return b.drain(ctx, start, n, checkpoint, counted{processor.Each(counting), delivered})
	}}
}

// post sends n requests over one connection, each after the answer to the one before, and returns how many a second.
func post(ctx context.Context, url string, n int) (float64, error) {
	transport := &http.Transport{MaxConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	began := time.Now()
	for i := range n {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(payload(i)))
		if err != nil {
			return 0, err
		}
		request.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(request)
		if err != nil {
			return 0, err
		}
		// Read to its end, or the connection is not used again.
		_, err = io.Copy(io.Discard, answer.Body)
		if err := errors.Join(err, answer.Body.Close()); err != nil {
			return 0, err
		}
		if answer.StatusCode != http.StatusOK {
			return 0, fmt.Errorf("the receiver answered %s", answer.Status)
		}
	}
	return float64(n) / time.Since(began).Seconds(), nil
}

// startReceiver starts a child that answers requests at the url, until stop.
func startReceiver(ctx context.Context) (url string, stop func() error, err error) {
	cmd, err := command(ctx, taskReceive)
	if err != nil {
		return "", nil, err
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("start the receiver: %w", err)
	}
	stop = func() error { return errors.Join(stdin.Close(), cmd.Wait()) }
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("read the address of the receiver: %w", err), stop())
	}
	return strings.TrimSpace(line), stop, nil
}

// receive is the child's part: it writes its URL and answers 200 to every request until stdin ends, which it does
// with the parent.
func receive(stdin io.Reader, stdout io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a broken request is its sender's to report
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	fmt.Fprintf(stdout, "http://%s/\n", listener.Addr())
	_, err = io.Copy(io.Discard, stdin)
	err = errors.Join(err, server.Close())
	if served := <-served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
