package migrations

import "time"

// Within is the configuration with another time for each wait.
func (c Config) Within(wait time.Duration) Config {
	c.waits = waits{connect: wait, answer: wait, lock: wait}
	return c
}
