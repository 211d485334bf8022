package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// verdict is what a history amounts to. Lists hold the ids of bookings.
type verdict struct {
	Committed  int // bookings, by the producers' log or the table
	RolledBack int
	Delivered  int // of the committed ones

	Lost        []int64     // committed and never delivered
	OutOfOrder  []int64     // first delivered behind a later one
	Duplicates  []duplicate // delivered again
	Phantoms    []int64     // delivered, though never committed
	Altered     []int64     // delivered with other contents than were inserted
	Misnumbered []int64     // with a sequence that is not one more than the last
	Stale       []int64     // under an epoch older than one already seen
	Disputed    []int64     // the producers' log and the table do not say the same

	TakeOvers []time.Duration // from each kill to the first delivery under a newer epoch
	Latency   quantiles       // from COMMIT to first delivery
	Own       quantiles       // the same, from when the order allowed it: see ripeness
}

// duplicate is a further delivery of a booking.
type duplicate struct {
	Booking  int64
	Sequence int64
	Cause    string // "" if no fault explains it
}

// judge computes the verdict. It depends on nothing but the history.
func judge(h history) verdict {
	var v verdict
	committed := v.agree(h.Log, h.Table)
	firsts, repeats := split(h.Deliveries)
	v.compare(committed, firsts)
	v.checkContents(committed, h.Deliveries)
	v.checkOrder(h.Table, firsts)
	v.checkEpochs(h.Deliveries)
	v.tieToKills(repeats, h.Kills)
	v.TakeOvers = takeOvers(h)
	v.Latency, v.Own = latencies(h.Log, firsts)
	return v
}

// agree returns the contents of all bookings that the log or the table holds to be committed.
func (v *verdict) agree(log []entry, table []booking) map[int64]digest {
	committed := make(map[int64]digest, len(table))
	for _, b := range table {
		committed[b.ID] = b.digest()
	}
	logged := make(map[int64]bool, len(table))
	for _, e := range log {
		id := e.Booking.ID
		contents, stands := committed[id]
		logged[id] = e.Committed
		switch {
		case !e.Committed:
			v.RolledBack++
		case !stands || contents != e.Booking.digest():
			v.Disputed = append(v.Disputed, id)
			committed[id] = e.Booking.digest()
		}
	}
	for _, b := range table {
		if !logged[b.ID] {
			v.Disputed = append(v.Disputed, b.ID)
		}
	}
	v.Committed = len(committed)
	return committed
}

// split parts the first delivery of each booking from those that repeat it.
func split(deliveries []delivery) (firsts, repeats []delivery) {
	seen := make(map[int64]bool, len(deliveries))
	for _, d := range deliveries {
		if seen[d.Booking] {
			repeats = append(repeats, d)
		} else {
			firsts = append(firsts, d)
		}
		seen[d.Booking] = true
	}
	return firsts, repeats
}

// compare looks for what is missing, and for what should not be there.
func (v *verdict) compare(committed map[int64]digest, firsts []delivery) {
	delivered := make(map[int64]bool, len(firsts))
	for _, d := range firsts {
		delivered[d.Booking] = true
		if _, ok := committed[d.Booking]; !ok {
			v.Phantoms = append(v.Phantoms, d.Booking)
		}
	}
	for id := range committed {
		if delivered[id] {
			v.Delivered++
		} else {
			v.Lost = append(v.Lost, id)
		}
	}
	slices.Sort(v.Lost)
}

func (v *verdict) checkContents(committed map[int64]digest, deliveries []delivery) {
	for _, d := range deliveries {
		if contents, ok := committed[d.Booking]; ok && contents != d.Digest {
			v.Altered = append(v.Altered, d.Booking)
		}
	}
}

// checkOrder holds the first deliveries against the positions they came with, against the order of the table, and
// against their sequence.
func (v *verdict) checkOrder(table []booking, firsts []delivery) {
	rank := make(map[int64]int, len(table))
	for i, b := range table {
		rank[b.ID] = i + 1
	}
	var position string
	var sequence int64
	highest := 0
	for _, d := range firsts {
		r := rank[d.Booking] // 0 if it is not there, which compare reports
		if d.Position <= position || r != 0 && r < highest {
			v.OutOfOrder = append(v.OutOfOrder, d.Booking)
		}
		if d.Sequence != sequence+1 {
			v.Misnumbered = append(v.Misnumbered, d.Booking)
		}
		position, sequence, highest = max(position, d.Position), d.Sequence, max(highest, r)
	}
}

func (v *verdict) checkEpochs(deliveries []delivery) {
	var epoch int64
	for _, d := range deliveries {
		if d.Epoch < epoch {
			v.Stale = append(v.Stale, d.Booking)
		}
		epoch = max(epoch, d.Epoch)
	}
}

// tieToKills looks for the cause of each further delivery. It must carry the sequence that the worker killed had given
// to the booking.
func (v *verdict) tieToKills(repeats []delivery, kills []kill) {
	kills = slices.Clone(kills)
	for _, d := range repeats {
		again := duplicate{Booking: d.Booking, Sequence: d.Sequence}
		i := slices.IndexFunc(kills, func(k kill) bool {
			return k.Held.Booking == d.Booking && k.Held.Sequence == d.Sequence && k.Held.Epoch < d.Epoch
		})
		if i >= 0 {
			again.Cause = fmt.Sprintf("attempt in flight when worker %s was killed", kills[i].Worker)
			kills = slices.Delete(kills, i, i+1) // with a checkpoint of 1, a fault excuses one duplicate
		}
		v.Duplicates = append(v.Duplicates, again)
	}
}

// unexplained are the duplicates without a cause.
func (v verdict) unexplained() []int64 {
	var ids []int64
	for _, d := range v.Duplicates {
		if d.Cause == "" {
			ids = append(ids, d.Booking)
		}
	}
	return ids
}

// Err is nil if the dispatcher kept its promises.
func (v verdict) Err() error {
	if broken := v.broken(); broken != "" {
		return errors.New("the verdict is bad: " + broken)
	}
	return nil
}

// broken says which promises were broken; "" if none was.
func (v verdict) broken() string {
	var faults []string
	for _, f := range v.faults() {
		if len(f.ids) > 0 {
			faults = append(faults, fmt.Sprintf("%d %s", len(f.ids), f.name))
		}
	}
	if v.Committed == 0 {
		faults = append(faults, "nothing was committed, so nothing is proved")
	}
	return strings.Join(faults, ", ")
}

// fault is a kind of broken promise, and the bookings it was broken for.
type fault struct {
	name string
	ids  []int64
}

func (v verdict) faults() []fault {
	return append([]fault{
		{"lost", v.Lost},
		{"out of order", v.OutOfOrder},
		{"duplicated without a cause", v.unexplained()},
	}, v.otherFaults()...)
}

// otherFaults are those that are not worth a line of the verdict unless they occur.
func (v verdict) otherFaults() []fault {
	all := []fault{
		{"delivered but never committed", v.Phantoms},
		{"delivered with altered contents", v.Altered},
		{"with a wrong sequence", v.Misnumbered},
		{"under an outdated epoch", v.Stale},
		{"on which the producers' log and the table disagree", v.Disputed},
	}
	return slices.DeleteFunc(all, func(f fault) bool { return len(f.ids) == 0 })
}
