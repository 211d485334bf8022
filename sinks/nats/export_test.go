package nats

// HangUp ends the connection on this side, before its readers notice.
func (s *Sink) HangUp() { s.link.cut() }

// FillsUp reports whether claims fill a subject.
var FillsUp = fillsUp

// ErrSetBack is that of a stream that has lost messages.
var ErrSetBack = errSetBack
