// Command read-model is a bank without a table of balances: it writes events, and builds the balances of them. While it
// goes on, it builds a second version beside the first one, compares the two, and switches readers over. In the end it
// compares the balances with the sums over the events.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"
)

func main() {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil))) // what the library logs would hide the story
	if err := run(context.Background(), os.Getenv("DATABASE_URL"), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "read-model:", err)
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
	b := bank{pool: pool, out: out}
	return b.story(ctx)
}
