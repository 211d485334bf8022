package migrations

import "time"

// Within is the configuration with another time for a connection, and for answers and
// locks. A busy machine takes its time over the former.
func (c Config) Within(connect, rest time.Duration) Config {
	c.waits = waits{connect: connect, answer: rest, lock: rest}
	return c
}

// LockWithin is the configuration with another time for locks.
func (c Config) LockWithin(wait time.Duration) Config {
	c.waits = defaultWaits
	c.waits.lock = wait
	return c
}
