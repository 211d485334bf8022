// Package pgwall bounds how much a PostgreSQL server can make the driver keep. The driver bounds one message, and a
// server may send any number of them.
package pgwall

import (
	"io"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

const (
	maxLogin      = 1 << 20  // bytes of all messages up to the end of the login
	maxParameter  = 64 << 10 // bytes of a parameter that the server reports, with its name
	maxParameters = 64       // PostgreSQL reports about fifteen
)

// Bound changes how connections of a configuration read. A connection ends when the server sends more than 1 MiB
// before the login is done, a parameter of more than 64 KiB, more than 64 different parameters, or, after the login,
// rows of more than maxRows bytes in one answer. If maxRows is 0, rows are not bounded. Notifications are dropped,
// because this program does not use them.
func Bound(c *pgconn.Config, maxRows int) {
	c.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) {}
	c.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		return pgproto3.NewFrontend(&reader{from: r, maxRows: maxRows, parameters: map[string]struct{}{}}, w)
	}
}
