package nats

import "time"

// Unhurried takes a server that is silent for minutes for one that answers.
func (c *Config) Unhurried() { c.heartbeat, c.Timeout = 10*time.Minute, 10*time.Minute }

// HangUp ends the connection on this side, before its readers notice.
func (s *Sink) HangUp() { s.link.cut() }

// FillsUp reports whether claims fill a subject.
var FillsUp = fillsUp

// ErrSetBack is that of a stream that has lost messages.
var ErrSetBack = errSetBack

// TakesNone reports whether the server's word is of no record in particular.
var TakesNone = takesNone
