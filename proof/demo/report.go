package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

func (s *screen) introduce() {
	s.say("Bookings are committed to PostgreSQL. Each of them must reach an SMS service, in")
	s.say("order and with none missing, though a worker is killed on the way.")
	s.say("")
}

// part prints a line about one of the parties. Further lines about it have no name.
func (s *screen) part(name, format string, args ...any) {
	s.say("%-13s %s", name, fmt.Sprintf(format, args...))
}

func (s *show) announce(duration time.Duration) {
	a, b := s.workers.both[0], s.workers.both[1]
	s.screen.part("Workers", "ordered-dispatcher run -c %s: A (process %d), B (process %d)", configFile, a.process.Pid(), b.process.Pid())
	s.screen.part("", "one works, the other stands by; the epoch grows when they change")
	s.screen.part("Producers", "%d, for %v: transactions of 0 to %v that overlap, %d%% rolled back", producers, duration, maxTransaction, rollbackPercent)
	s.screen.part("", "an unrelated transaction stays open all along, and must hold nothing up")
	s.screen.say("")
}

// say prints a line with the time since the producers began.
func (s *show) say(format string, args ...any) {
	s.screen.say("%s", s.stamp()+fmt.Sprintf(format, args...))
}

func (s *show) stamp() string { return fmt.Sprintf("%5.1f s  ", time.Since(s.began).Seconds()) }

// progress shows the numbers of this moment and returns the receiver's.
func (s *show) progress() progress {
	p := s.sms.progress()
	s.screen.show(fmt.Sprintf("%scommitted %5d  delivered %5d  waiting %4d  duplicates %d  epoch %d",
		s.stamp(), s.market.committed.Load(), p.delivered, s.waiting(p), p.duplicates, p.epoch))
	return p
}

// maxListed bounds the bookings that are named for one fault.
const maxListed = 10

// pronounce prints the verdict.
func (s *screen) pronounce(v verdict) {
	s.say("")
	s.say("Verdict")
	s.count("committed", v.Committed, fmt.Sprintf("and %d more rolled back", v.RolledBack))
	s.count("delivered", v.Delivered, "")
	s.count("lost", len(v.Lost), list(v.Lost))
	s.count("out of order", len(v.OutOfOrder), list(v.OutOfOrder))
	s.count("duplicates", len(v.Duplicates), "")
	for _, d := range v.Duplicates[:min(maxListed, len(v.Duplicates))] {
		s.say("    booking %d (sequence %d): %s", d.Booking, d.Sequence, cmp.Or(d.Cause, "no fault explains it"))
	}
	for _, f := range v.otherFaults() {
		s.count(f.name, len(f.ids), list(f.ids))
	}
	for _, d := range v.TakeOvers {
		s.say("  %-14s %7s  from kill -9 to the first delivery of the other worker", "take-over", short(d))
	}
	s.say("")
	s.say("From commit to delivery: %v.", v.Latency)
	s.say("An order without gaps makes a booking wait for older transactions that are still")
	s.say("open. From the end of the last of those: %v.", v.Own)
	s.say("")
	if broken := v.broken(); broken != "" {
		s.say("BAD: %s.", broken)
		return
	}
	s.say("GOOD: every committed booking arrived, in order, and each duplicate has its cause.")
}

// count prints a number and what there is to say about it.
func (s *screen) count(name string, n int, note string) {
	s.say("%s", strings.TrimRight(fmt.Sprintf("  %-14s %7d  %s", name, n, note), " "))
}

func list(ids []int64) string {
	if len(ids) == 0 {
		return ""
	}
	text := "bookings " + strings.Trim(fmt.Sprint(ids[:min(maxListed, len(ids))]), "[]")
	if len(ids) > maxListed {
		text += " …"
	}
	return text
}

func (q quantiles) String() string {
	return fmt.Sprintf("p50 %s, p99 %s, longest %s", short(q.P50), short(q.P99), short(q.Max))
}
