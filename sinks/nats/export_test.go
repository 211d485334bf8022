package nats

// HangUp ends the connection on this side, before its readers notice.
func (s *Sink) HangUp() { s.link.cut() }

// ErrSetBack is that of a stream that has lost messages.
var ErrSetBack = errSetBack
