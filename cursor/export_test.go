package cursor

import (
	"context"
	"time"
)

// Exec executes SQL in the session of a lease, which asks nothing meanwhile.
func Exec(ctx context.Context, l *Lease, sql string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.conn.Exec(ctx, sql)
	return err
}

// Age lets a lease look as if its server had not been heard from for that long.
func Age(l *Lease, silence time.Duration) { l.answered.Add(-int64(silence)) }

// Stopped lets a lease look as if its worker had been stopped just now, and
// continued after that long.
func Stopped(l *Lease, d time.Duration) { l.began = l.began.Add(-d) }

// Unyielded lets a lease look at its next advance whether somebody waits.
func Unyielded(l *Lease) { l.waitersChecked = time.Time{} }

// Unwatched is a config whose leases do not look for the end of their session.
func Unwatched(c Config) Config {
	c.watch = time.Hour
	return c
}

// TornAfter is a config whose store ends a torn session that soon.
func TornAfter(c Config, d time.Duration) Config {
	c.torn = d
	return c
}

// WatchInterval is watchInterval.
const WatchInterval = watchInterval

// Quiet is quiet.
var Quiet = quiet

// Unplanned lets a lease plan its statements anew as soon as the row leaves its page.
func Unplanned(l *Lease) { l.planned = time.Time{} }

// StandAt has a lease take the row's newest version to be there.
func StandAt(l *Lease, ctid string) { l.at = version(ctid) }

// Log is how far the disk of the server was known to have its log.
func (n Seen) Log() int64 { return n.log }
