package desk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// lettersOfAll bounds the dead letters of one id, of all processes.
const lettersOfAll = 500

// finding is one search.
type finding struct {
	Search
	desk  *Desk
	op    *operator.Operator
	rows  map[string]cursor.Row
	asked map[string]answered // of a table, by what is read there: many processes may read one table
	found Found
}

// answered is what a table has.
type answered struct {
	records []table.Shown
	err     error
}

// all asks the sources of the processes, and then the dead letters.
func (f *finding) all(ctx context.Context) (Found, error) {
	f.found = Found{Sightings: []Sighting{}, More: []string{}, Problems: []Problem{}}
	for _, p := range f.desk.config.Config.Processes {
		if f.Process != "" && p.Name != f.Process {
			continue
		}
		if err := f.of(ctx, p); err != nil {
			f.found.Problems = append(f.found.Problems, Problem{p.Name, f.desk.board.clean(err)})
		}
		if ctx.Err() != nil {
			break
		}
	}
	if f.By == ByID {
		if err := f.gone(ctx); err != nil {
			return f.found, err
		}
	}
	return f.found, nil
}

// of finds the records of one process.
func (f *finding) of(ctx context.Context, p daemon.Process) error {
	source, err := f.desk.asking.Source(p.Name)
	if err != nil {
		return err
	}
	records, err := f.records(ctx, p, source)
	if errors.Is(err, table.ErrNoKey) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(records) == 0 {
		return nil
	}
	passage, err := f.op.Since(ctx, p.Name, 0)
	has := err == nil
	if err != nil && !errors.Is(err, cursor.ErrUnknown) {
		return err
	}
	row := passage.Row
	if len(records) > MaxSightings {
		records = records[:MaxSightings]
		f.found.More = append(f.found.More, p.Name)
	}
	var sightings []Sighting
	for _, shown := range records {
		record := recordOf(shown, row)
		if f.By == ByDedup && record.DedupKey != f.Text {
			continue
		}
		if len(f.found.Sightings)+len(sightings) >= maxSightings {
			f.found.More = append(f.found.More, p.Name)
			break
		}
		s := Sighting{Process: p.Name, Record: record, Cursor: string(row.Position), Place: Unborn}
		if has {
			if err := f.place(ctx, &s, passage, source); err != nil {
				return err
			}
		}
		s.Text = s.text()
		sightings = append(sightings, s)
	}
	slices.Reverse(sightings) // the newest came first
	f.found.Sightings = append(f.found.Sightings, sightings...)
	return nil
}

// records asks a source, unless another process has asked the same table the same thing.
func (f *finding) records(ctx context.Context, p daemon.Process, source *table.Source) ([]table.Shown, error) {
	c := p.Source
	same := fmt.Sprintf("%q %q %q %q %+v", c.Table, c.Where, c.Order, c.Preset, c.Columns)
	if a, has := f.asked[same]; has {
		return a.records, a.err
	}
	var a answered
	a.records, a.err = f.ask(ctx, source)
	f.asked[same] = a
	return a.records, a.err
}

func (f *finding) ask(ctx context.Context, source *table.Source) ([]table.Shown, error) {
	const limit = MaxSightings + 1
	switch f.By {
	case ByID:
		return source.WithID(ctx, f.Text, limit, MaxPayload)
	case ByKey:
		return source.WithKey(ctx, f.Text, limit, MaxPayload)
	}
	name, err := source.Name(ctx)
	id, ours := strings.CutPrefix(f.Text, name+"/")
	if err != nil || !ours {
		return nil, err
	}
	records, err := source.WithID(ctx, id, limit, MaxPayload)
	if at := strings.LastIndex(id, "/"); at >= 0 && err == nil {
		var more []table.Shown
		more, err = source.WithID(ctx, id[:at], limit, MaxPayload)
		records = append(records, more...)
	}
	return records, err
}

// place finds out where a record is for a process.
func (f *finding) place(ctx context.Context, s *Sighting, passage operator.Passage, source *table.Source) error {
	at, row := cursor.Position(s.Record.Position), passage.Row
	letters, err := f.op.LettersOfRecord(ctx, s.Process, s.Record.ID, 1)
	if err != nil {
		return err
	}
	if len(letters) > 0 && letters[0].Position == at {
		letter := f.desk.letterOf(letters[0], Masked)
		s.Letter, s.Failure = &letter, &letter.Failure
	}
	if row.Failure != nil && row.Failure.Position == at {
		failure := failureOf(*row.Failure)
		s.Failure = &failure
	}
	after, upTo := row.Position, at
	if at <= row.Position {
		after, upTo = at, row.Position
	}
	if row.Position == cursor.Unplaced {
		return nil
	}
	span, err := source.Between(ctx, after, upTo, 0)
	if err != nil {
		return err
	}
	s.Between, s.Capped = span.Total, span.Total >= table.MaxLagRecords
	if at > row.Position {
		s.Between = max(0, s.Between-1) // itself
		s.Place = ahead(s)
		return nil
	}
	s.Place = passed(passage.Fate(at), s.Letter)
	return nil
}

// ahead is the place of a record after the cursor.
func ahead(s *Sighting) Place {
	switch {
	case s.Failure != nil && s.Letter == nil:
		return Failing
	case s.Between == 0:
		return Next
	default:
		return Ahead
	}
}

// placeOf is the place of a record that was put aside.
func placeOf(l Letter) Place {
	switch l.Resolution {
	case string(cursor.Replayed):
		return Replayed
	case string(cursor.Discarded):
		return Discarded
	default:
		return DeadLettered
	}
}

// passed is how the cursor passed a record. letter is the one of it; nil if there is none.
func passed(fate operator.Fate, letter *Letter) Place {
	omitted := ""
	if fate.Omitted != nil {
		omitted = fate.Omitted.Action
	}
	switch {
	case fate.Delivered:
		return Delivered
	case letter != nil && (omitted == "" || omitted == "dead_letter"):
		return placeOf(*letter)
	case omitted == "skip":
		return Skipped
	case omitted == "seek":
		return Sought
	case omitted == "dead_letter":
		return PutAside
	case fate.Before:
		return Before
	default:
		return Passed
	}
}

// gone adds records that only a dead letter has.
func (f *finding) gone(ctx context.Context) error {
	letters, err := f.op.LettersOfRecord(ctx, f.Process, f.Text, lettersOfAll)
	for _, l := range letters {
		has := slices.ContainsFunc(f.found.Sightings, func(s Sighting) bool { return s.Process == l.Process && s.Record.ID == l.RecordID })
		if has || len(f.found.Sightings) >= maxSightings {
			continue
		}
		letter := f.desk.letterOf(l, Full) // Find masks it
		s := Sighting{Process: l.Process, Record: letter.Record, Place: Gone, Cursor: string(f.rows[l.Process].Position), Failure: &letter.Failure}
		letter.Record = masked(letter.Record)
		s.Letter = &letter
		s.Text = s.text()
		f.found.Sightings = append(f.found.Sightings, s)
	}
	slices.SortStableFunc(f.found.Sightings, func(x, y Sighting) int { return cmp.Compare(x.Process, y.Process) })
	return err
}

// text is a sentence about a sighting.
func (s Sighting) text() string {
	count := fmt.Sprintf("%d records", s.Between)
	if s.Between == 1 {
		count = "1 record"
	}
	if s.Capped {
		count += " or more"
	}
	process := visible.Line(s.Process)
	switch s.Place {
	case Unborn:
		return process + " has no cursor yet"
	case Next:
		return "it is the next record of " + process
	case Failing:
		return fmt.Sprintf("%s is stuck on it, %s", process, cursor.Failure{Attempts: s.Failure.Attempts, First: s.Failure.First}.Tried())
	case Ahead:
		return fmt.Sprintf("%s has not come to it yet: %s come before it", process, count)
	case DeadLettered:
		return fmt.Sprintf("%s put it aside as dead letter %d, which is open", process, s.Letter.ID)
	case Replayed:
		return fmt.Sprintf("%s put it aside as dead letter %d, and delivered it late, by %s", process, s.Letter.ID, visible.Line(s.Letter.ResolvedBy))
	case Discarded:
		return fmt.Sprintf("%s put it aside as dead letter %d, which was discarded by %s", process, s.Letter.ID, visible.Line(s.Letter.ResolvedBy))
	case Skipped:
		return fmt.Sprintf("%s skipped it, %s before where it is now", process, count)
	case Sought:
		return fmt.Sprintf("a seek of %s passed over it, %s before where it is now", process, count)
	case PutAside:
		return fmt.Sprintf("%s put it aside as a dead letter that is not there any more, %s before where it is now", process, count)
	case Before:
		return fmt.Sprintf("%s has not delivered it: it comes before the place at which it began, %s before where it is now", process, count)
	case Passed:
		return fmt.Sprintf("%s has passed it, and the audit does not show how: it is %s past it", process, count)
	case Gone:
		return fmt.Sprintf("its row is gone, or is another one now: dead letter %d of %s has it, which is %s", s.Letter.ID, process, s.Letter.Resolution)
	default:
		return fmt.Sprintf("%s has delivered it: it is %s past it", process, count)
	}
}
