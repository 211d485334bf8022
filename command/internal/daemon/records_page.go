package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

const (
	readAtOnce  = 100      // records
	answerBytes = 16 << 20 // of payloads, and one more
)

// errFull reports that an answer has as much as it may have, and that there is more.
var errFull = errors.New("the answer is full")

// Write writes the answer: a line for each record, in the order in which they were sent, and one for each place where
// records were passed without a delivery. The last line says whether there are more. After an error it is missing.
func (a *Answer) Write(ctx context.Context, w io.Writer) error {
	p := &page{Answer: a, w: w, at: a.ask.From, left: a.ask.Limit, bytes: answerBytes, omitted: a.passed.Omitted, replayed: a.passed.Replayed}
	switch err := p.write(ctx); {
	case errors.Is(err, errFull):
		return writeJSON(w, lastLine{lastPlace{From: p.at.String()}})
	case err != nil:
		return err
	default:
		return writeJSON(w, lastLine{lastPlace{Sequence: strconv.FormatInt(a.row.Sequence, 10), Epoch: strconv.FormatInt(int64(a.epoch()), 10), Origin: a.row.Origin, Position: a.row.Position}})
	}
}

// epoch is the epoch of each line of the answer. It is 1 if no worker has taken the cursor yet.
func (a *Answer) epoch() cursor.Epoch { return max(1, a.row.Epoch) }

// page is an answer as it is written.
type page struct {
	*Answer
	w           io.Writer
	at          Place // what was written
	left, bytes int   // what may be written: records, and bytes of their payloads
	omitted     []operator.Event
	replayed    []operator.Replay
}

func (p *page) write(ctx context.Context) error {
	for _, s := range cut(p.passed.Delivered, p.replayed) {
		if err := p.between(ctx, func(at cursor.Position) bool { return at <= s.After }); err != nil {
			return err
		}
		if err := p.stretch(ctx, s); err != nil {
			return err
		}
	}
	return p.between(ctx, func(cursor.Position) bool { return true })
}

// cut cuts stretches where a dead letter was replayed.
func cut(all []operator.Stretch, replayed []operator.Replay) (pieces []operator.Stretch) {
	var ats []cursor.Position
	for _, r := range replayed {
		ats = append(ats, r.At)
	}
	slices.Sort(ats)
	for _, s := range all {
		for _, at := range ats {
			if s.After < at && at < s.UpTo {
				pieces = append(pieces, operator.Stretch{After: s.After, UpTo: at})
				s.After = at
			}
		}
		pieces = append(pieces, s)
	}
	return pieces
}

// between writes what is due at a place between two records: events that passed records, and dead letters that were
// replayed. It leaves out what an earlier answer had. Replays keep their order: a later one may have come at an earlier
// place, after a seek.
func (p *page) between(ctx context.Context, due func(cursor.Position) bool) error {
	for ; len(p.omitted) > 0 && due(p.omitted[0].From); p.omitted = p.omitted[1:] {
		if e := p.omitted[0]; e.To > p.ask.From.Position {
			if err := p.omit(e); err != nil {
				return err
			}
		}
	}
	for ; len(p.replayed) > 0 && due(p.replayed[0].At); p.replayed = p.replayed[1:] {
		r := p.replayed[0]
		if r.Event.ID <= p.ask.From.Replay {
			continue
		}
		if err := p.replay(ctx, r); err != nil {
			return err
		}
		p.at.Replay = r.Event.ID
	}
	return nil
}

// stretch writes the records of a stretch.
func (p *page) stretch(ctx context.Context, s operator.Stretch) error {
	after := max(s.After, p.at.Position)
	for after < s.UpTo {
		if p.full() {
			p.at.Position = after
			return errFull
		}
		read, err := p.source.Read(ctx, after, min(p.left, readAtOnce))
		if err != nil {
			return err
		}
		if err := p.kept(ctx, after); err != nil { // a prune may have come before this read, and after Find looked
			return err
		}
		within := slices.DeleteFunc(read.Records, func(r processor.Record) bool { return r.Position > s.UpTo })
		amended, err := amendments(ctx, p.op, p.row, within)
		if err != nil {
			return err
		}
		for _, record := range within {
			if p.full() {
				break
			}
			if a, found := amended[record.Position]; found {
				record = record.Amend(a.Payload)
			}
			if err := p.record(ctx, record, max(1, p.row.Sequence), 1); err != nil {
				return err
			}
			after = record.Position
			p.at.Position = after
		}
		if len(read.Records) == 0 {
			after = read.Passed
		}
		if after == "" || len(within) < len(read.Records) {
			break
		}
	}
	return nil
}

func (p *page) full() bool { return p.left <= 0 || p.bytes <= 0 }

// replay writes a dead letter, as its replay sent it.
func (p *page) replay(ctx context.Context, r operator.Replay) error {
	if p.full() {
		return errFull
	}
	l, err := p.op.DeadLetter(ctx, r.Letter)
	switch {
	case errors.Is(err, cursor.ErrNoDeadLetter), err == nil && operator.Erased(l):
		return p.omit(r.Event)
	case err != nil:
		return err
	case l.Withheld:
		return fmt.Errorf("the role may not read dead letter %d: %s", r.Letter, grantsFix)
	}
	return p.record(ctx, processor.OfLetter(l), l.Sequence, l.Failure.Attempts+1)
}

// record writes one record as it would be delivered now, out of its turn.
func (p *page) record(ctx context.Context, r processor.Record, sequence int64, attempt int) error {
	err := r.Fault
	if err == nil && p.prepare != nil {
		within, cancel := context.WithTimeout(ctx, p.process.filled().Timeout)
		defer cancel()
		var made processor.Record
		if made, err = p.prepare(within, r); err == nil {
			r.Type, r.Headers, r.Payload = made.Type, made.Headers, made.Payload
		}
	}
	if err != nil {
		return fmt.Errorf("record %s at %s cannot be shown: %w", visible.Cut(r.ID), visible.Cut(string(r.Position)), err)
	}
	history, err := p.row.Histories.At(r.Position)
	if err != nil {
		return err
	}
	p.left, p.bytes = p.left-1, p.bytes-len(r.Payload)
	return sinks.WriteLine(p.w, p.process.Sink.Config, processor.Delivery{
		Record: r, Process: p.process.Name, Sequence: sequence, Epoch: p.epoch(), Origin: p.row.Origin, History: history, Attempt: attempt, After: r.Position,
	})
}

func (p *page) omit(e operator.Event) error {
	return writeJSON(p.w, omittedLine{omission{e.Action, RecordOf(e), e.From, e.To, e.At.UTC()}})
}

// omittedLine is the line about records that the process passed without a delivery. Fields may be added, never changed.
type omittedLine struct {
	Omitted omission `json:"omitted"`
}

type omission struct {
	Action string          `json:"action"`
	Record string          `json:"record_id,omitempty"`
	After  cursor.Position `json:"after"`
	UpTo   cursor.Position `json:"up_to"`
	At     time.Time       `json:"at"`
}

// lastLine ends an answer. Fields may be added, never changed.
type lastLine struct {
	End lastPlace `json:"end"`
}

// lastPlace is where an answer ends: with From there are more records. Without it, there are none up to Sequence, which
// the cursor had in Epoch.
type lastPlace struct {
	From     string          `json:"from,omitempty"`
	Sequence string          `json:"sequence,omitempty"`
	Epoch    string          `json:"epoch,omitempty"`
	Origin   string          `json:"origin,omitempty"`
	Position cursor.Position `json:"position,omitempty"`
}

func writeJSON(w io.Writer, line any) error { return json.NewEncoder(w).Encode(line) }
