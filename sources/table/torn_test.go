package table

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// tearing is a connection that ends within long answers, as often as cuts has it.
type tearing struct {
	net.Conn
	cuts *atomic.Int64
	got  int // since the last question
}

const longAnswer = 100_000

func (c *tearing) Write(data []byte) (int, error) {
	c.got = 0
	return c.Conn.Write(data)
}

func (c *tearing) Read(data []byte) (int, error) {
	n, err := c.Conn.Read(data)
	c.got += n
	if c.got > longAnswer && c.cuts.Add(-1) >= 0 {
		return 0, io.EOF
	}
	return n, err
}

// A connection that is cut within a row says nothing about the size of that row.
func TestRead_AConnectionThatIsCutWithinARowMakesItNotTooLarge(t *testing.T) {
	t.Parallel()
	admin := database(t, bookingsSQL+`INSERT INTO app.bookings (note) VALUES (repeat('x', 1000000))`)
	later(t, admin)
	var cuts atomic.Int64
	config := admin.Config().Copy()
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return &tearing{Conn: conn, cuts: &cuts}, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s := bookings(t, pool, Config{})
	for times := range 6 {
		cuts.Store(int64(times))
		var page processor.Page
		await(t, "the row is read", func() bool {
			page, err = s.Read(t.Context(), "", 10)
			require.False(t, processor.IsPermanent(err), err)
			return err == nil && len(page.Records) > 0
		})
		require.NoError(t, page.Records[0].Fault, "cut %d times", times)
		require.Greater(t, len(page.Records[0].Payload), 1_000_000)
		require.Negative(t, cuts.Load(), "it was cut so many times")
	}
}
