// Command booking-sms takes bookings over HTTP and has an SMS sent for each, in the order of the bookings. The provider
// of the SMS fails for a while, and once it takes an SMS without an answer. In the end the program compares the bookings
// with what the provider has sent.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
)

const (
	customers = 4
	bookings  = 50 // of each customer
)

func main() {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil))) // what the library logs would hide the story
	if err := run(context.Background(), os.Getenv("DATABASE_URL"), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "booking-sms:", err)
		os.Exit(1)
	}
}

// run plays the story in an empty database.
func run(ctx context.Context, address string, out io.Writer) error {
	pool, err := pgxpool.New(ctx, address)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := prepare(ctx, address, pool); err != nil {
		return err
	}
	provider := &provider{out: out}
	providerURL, closeProvider, err := serve(provider)
	if err != nil {
		return err
	}
	defer closeProvider()
	serviceURL, closeService, err := serve(&service{pool: pool})
	if err != nil {
		return err
	}
	defer closeService()

	dispatcher, err := newDispatcher(pool, providerURL)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	running := make(chan error, 1)
	go func() { running <- dispatcher.Run(ctx) }()

	if err := book(ctx, serviceURL); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d customers have made %d bookings\n", customers, customers*bookings)
	if err := provider.wait(ctx, customers*bookings); err != nil {
		return err
	}
	stop()
	if err := <-running; err != nil {
		return err
	}
	return verdict(context.WithoutCancel(ctx), pool, provider, out)
}

// book has every customer make bookings, all at the same time.
func book(ctx context.Context, serviceURL string) error {
	var all errgroup.Group
	for c := range customers {
		all.Go(func() error {
			for range bookings {
				if err := bookOnce(ctx, serviceURL, fmt.Sprintf("+49 170 000%d", c)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return all.Wait()
}

// bookOnce makes one booking, for a phone number.
func bookOnce(ctx context.Context, serviceURL, phone string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, serviceURL, strings.NewReader(phone))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		return fmt.Errorf("the service answered %s", resp.Status)
	}
	return nil
}

// verdict compares the bookings, in their order, with the SMS, in theirs.
func verdict(ctx context.Context, pool *pgxpool.Pool, p *provider, out io.Writer) error {
	rows, err := pool.Query(ctx, `SELECT payload ->> 'text' FROM public.outbox ORDER BY created_at, id`)
	if err != nil {
		return err
	}
	defer rows.Close()
	sent, requests := p.sent()
	wrong, n := 0, 0
	for ; rows.Next(); n++ {
		var text string
		if err := rows.Scan(&text); err != nil {
			return err
		}
		if n >= len(sent) || sent[n] != text {
			wrong++
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	wrong += max(0, len(sent)-n)
	fmt.Fprintf(out, "verdict: %d bookings, %d requests, %d SMS, %d of them missing, twice or out of order\n", n, requests, len(sent), wrong)
	if wrong > 0 {
		return fmt.Errorf("the SMS are not those of the bookings")
	}
	return nil
}
