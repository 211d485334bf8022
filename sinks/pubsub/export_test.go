package pubsub

import "time"

// LookEvery has a sink look at its topic as often as a test can wait for.
func (s *Sink) LookEvery(d time.Duration) { s.every = d }
