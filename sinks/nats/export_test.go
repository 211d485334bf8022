package nats

// HangUp ends the connection on this side, before its readers notice.
func (s *Sink) HangUp() { s.link.cut() }
