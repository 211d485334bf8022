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
		b.deliveries(url, records.lastOf(), often),
		b.deliveries(url, records.manyOf(), seldom),
		alone("same POST", records.many, func(ctx context.Context, n int) error { return post(ctx, url, n, webhookHeader) }),
		alone("bare POST", records.many, func(ctx context.Context, n int) error { return post(ctx, url, n, bareHeader) }))
	if err != nil {
		return nil, err
	}
	const same, bare = "sequential POSTs of the same requests", "sequential POSTs of the body, without the headers"
	what := func(checkpoint int, than string) string {
		return fmt.Sprintf("webhook, checkpoint %d : %s, to another process", checkpoint, than)
	}
	return []row{
		versus("webhook", what(often, same), results[0], results[2], target{}),
		versus("webhook", what(seldom, same), results[1], results[2], target{0.85, atLeast}),
		versus("webhook", what(seldom, bare), results[1], results[3], target{}),
	}, nil
}

// deliveries is the dispatcher with the webhook sink.
func (b *bench) deliveries(url string, reads part, checkpoint int) contestant {
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
		return b.drain(ctx, reads, checkpoint, counted{processor.Each(counting), delivered})
	}}
}

func bareHeader(int) http.Header { return http.Header{"Content-Type": {"application/json"}} }

func webhookHeader(n int) http.Header {
	e := envelopeOf(n)
	return http.Header{
		"Content-Type":     {"application/json"},
		"User-Agent":       {"ordered-dispatcher"},
		"Idempotency-Key":  {e.key},
		"Ordered-Process":  {e.process},
		"Ordered-Sequence": {e.sequence},
		"Ordered-Epoch":    {e.epoch},
		"Ordered-Attempt":  {e.attempt},
		"Ordered-Position": {e.position},
	}
}

// post sends n requests over one connection, each after the answer to the one before.
func post(ctx context.Context, url string, n int, header func(n int) http.Header) error {
	transport := &http.Transport{MaxConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for i := range n {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(payload(i)))
		if err != nil {
			return err
		}
		request.Header = header(i)
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		// Read to its end, or the connection is not used again.
		_, err = io.Copy(io.Discard, answer.Body)
		if err := errors.Join(err, answer.Body.Close()); err != nil {
			return err
		}
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("the receiver answered %s", answer.Status)
		}
	}
	return nil
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
