package pglocal_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal"
)

// A server for as long as a function runs.
func ExampleStart() {
	ctx := context.Background()
	server, err := pglocal.Start(ctx, pglocal.Config{Settings: map[string]string{"max_connections": "30"}})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Stop(ctx)

	conn, err := pgx.Connect(ctx, server.URL())
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close(ctx)

	var limit string
	if err := conn.QueryRow(ctx, "SHOW max_connections").Scan(&limit); err != nil {
		log.Fatal(err)
	}
	fmt.Println("connections:", limit)
	// Output: connections: 30
}
