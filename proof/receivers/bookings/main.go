// Command bookings is the receiver of package receivers in Go: it books rooms.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/inbox"
)

func main() { log.Fatal(serve(context.Background())) }

func serve(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	box, err := inbox.New(inbox.Config{Receiver: "bookings"})
	if err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, box.SQL()); err != nil {
		return err
	}
	handler, err := box.Handler(pool, inbox.HandlerConfig{Secret: os.Getenv("SECRET")}, book)
	if err != nil {
		return err
	}
	server := http.Server{Addr: "127.0.0.1:" + os.Getenv("PORT"), Handler: handler, ReadTimeout: 30 * time.Second}
	return server.ListenAndServe()
}

// book refuses for good what has a room that does not exist, or a body that is not the payload itself.
func book(ctx context.Context, tx pgx.Tx, r inbox.Request) error {
	if r.ClaimCheck || r.ContentEncoding != "" {
		return fmt.Errorf("%w: the body is a reference or compressed", inbox.ErrPoison)
	}
	var booking struct {
		ID   int64
		Room string
	}
	if err := json.Unmarshal(r.Body, &booking); err != nil {
		return fmt.Errorf("%w: %w", inbox.ErrPoison, err)
	}
	var there bool
	if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM public.room WHERE name = $1)", booking.Room).Scan(&there); err != nil {
		return err
	}
	if !there {
		return fmt.Errorf("%w: there is no room %s", inbox.ErrPoison, booking.Room)
	}
	_, err := tx.Exec(ctx, "INSERT INTO public.booking (id, room) VALUES ($1, $2)", booking.ID, booking.Room)
	return err
}
