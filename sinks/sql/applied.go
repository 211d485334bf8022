package sql

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// applied is the target's knowledge of a process: up to where its records were applied, or passed over by an
// operator.
type applied struct {
	position cursor.Position
	sequence int64
	epoch    cursor.Epoch
	dedupKey string // of the record of that number; "" if not known
	origin   string // of the cursor that delivered them; "" if not known
	since    int64  // each number above it, up to sequence, was applied or is noted as refused
	recent   recent // the records that were applied last
}

// turn is a transaction that holds the lock of a process's row.
type turn struct {
	applied
	done int                  // how many deliveries, from the first on, are applied already
	rest []processor.Delivery // the deliveries to apply
}

// has reports whether a record was applied before: its attempt was committed, and the cursor did not learn of that.
func (a applied) has(d processor.Delivery) bool {
	return d.Sequence <= a.sequence && !a.chained(d)
}

// chained reports whether a record comes directly after the last applied one, by its position. Then its number does
// not matter: after a seek to the target's position nothing is missing, whatever either side was restored to.
func (a applied) chained(d processor.Delivery) bool {
	return d.After == a.position && d.Position > a.position
}

// isAnothers reports that the notes belong to another cursor than the record. Notes of an earlier version do not name
// their cursor. They become notes of the first cursor that comes.
func (a applied) isAnothers(d processor.Delivery) bool {
	return a.origin != "" && d.Origin != "" && a.origin != d.Origin
}

// isReplay reports whether a record is a dead letter, out of its turn.
func isReplay(d processor.Delivery) bool { return d.After == d.Position }

// foreign reports a record that has the number of another record that is in the target.
func (a applied) foreign(d processor.Delivery) bool {
	last := d.Sequence == a.sequence
	return d.Position > a.position ||
		last && d.Position != a.position ||
		last && a.dedupKey != "" && a.dedupKey != d.DedupKey()
}

// lockSQL finds the row by its primary key and holds it to the end of the transaction: of two workers one waits for
// the other. A worker may hang within the transaction, or its host may be gone. Then the server ends its session.
const (
	beginSQL = `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE`

	settingsSQL = `/* sql.settings */
SELECT
	pg_catalog.set_config('statement_timeout', $1, true),
	pg_catalog.set_config('idle_in_transaction_session_timeout', $2, true),
	CASE WHEN pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=) 'off' THEN pg_catalog.set_config('synchronous_commit', 'on', true) END`

	lockSQL = `/* sql.lock */
SELECT position, sequence, epoch, coalesce(dedup_key, ''), since, coalesce(origin, ''), coalesce(recent, '')
FROM {schema}.ordered_dispatcher_applied
WHERE process_name OPERATOR(pg_catalog.=) $1
FOR UPDATE`

	createSQL = `/* sql.create */
INSERT INTO {schema}.ordered_dispatcher_applied (process_name, position, sequence, epoch, since)
VALUES ($1, $2, $3, 0, $3)
ON CONFLICT DO NOTHING`
)

// idleTimeout is how long a worker may hang between locking and applying, before the server lets another one have the
// row.
const idleTimeout = "5000"

// begin locks the row of a process and compares the deliveries with it. An error is not about the record: nothing was
// written. In either case the connection may be left in a transaction.
func (r *Remote) begin(ctx context.Context, ds []processor.Delivery) (turn, error) {
	t, err := r.lock(ctx, ds)
	return t, processor.Unreached(err)
}

func (r *Remote) lock(ctx context.Context, ds []processor.Delivery) (turn, error) {
	first := ds[0]
	var batch pgconn.Batch
	batch.ExecParams(beginSQL, nil, nil, nil, nil)
	queue(&batch, settingsSQL, strconv.FormatInt(r.config.Timeout.Milliseconds(), 10), idleTimeout)
	begins := cursor.IsFirst(first.Sequence, first.Epoch) && !isReplay(first)
	if begins {
		queue(&batch, r.sql(createSQL), first.Process, string(first.After), number(first.Sequence-1))
	}
	queue(&batch, r.sql(lockSQL), first.Process)
	values, err := r.ask(ctx, &batch, 7)
	if err != nil {
		return turn{}, r.notBegun(ctx, err)
	}
	if values == nil && begins {
		return turn{}, r.notKept()
	}
	if values == nil {
		return turn{}, r.failed(r.unknownProcess(first))
	}
	row, err := parseApplied(values)
	if err != nil {
		return turn{}, r.failed(err)
	}
	return r.judge(ctx, row, ds)
}

func parseApplied(values [][]byte) (a applied, err error) {
	a.position, a.dedupKey, a.origin = cursor.Position(values[0]), string(values[3]), string(values[5])
	var numbers [3]int64
	for i, value := range [][]byte{values[1], values[2], values[4]} {
		if numbers[i], err = strconv.ParseInt(string(value), 10, 64); err != nil {
			return a, err
		}
	}
	a.sequence, a.epoch, a.since = numbers[0], cursor.Epoch(numbers[1]), numbers[2]
	a.recent, err = parseRecent(values[6])
	return a, err
}

// judge decides which of the deliveries are new, or why none may be applied.
func (r *Remote) judge(ctx context.Context, a applied, ds []processor.Delivery) (turn, error) {
	t := turn{applied: a}
	first := ds[0]
	if a.isAnothers(first) { // checked first: another cursor's numbers and epochs prove nothing about ours
		return t, r.failed(r.another(a, first))
	}
	if first.Epoch < a.epoch {
		return t, r.failed(r.fenced(a, first))
	}
	t.epoch, t.origin = first.Epoch, cmp.Or(first.Origin, a.origin)
	if isReplay(first) && first.Sequence <= a.sequence {
		return r.judgeReplay(ctx, t, ds)
	}
	for t.done < len(ds) && a.has(ds[t.done]) {
		if d := ds[t.done]; a.foreign(d) {
			return t, r.failed(r.foreign(a, d))
		}
		t.done++
	}
	t.rest = ds[t.done:]
	if len(t.rest) > 0 && t.rest[0].Sequence != a.sequence+1 {
		var err error
		if t, err = r.judgeJump(ctx, a, t); err != nil {
			return t, err
		}
	}
	return t, r.judgeDone(ctx, a, ds[:t.done])
}

// judgeJump handles numbers that go on elsewhere. No record between may be missing. Unless each of them is noted, the
// notes are without a gap only from here on.
func (r *Remote) judgeJump(ctx context.Context, a applied, t turn) (turn, error) {
	next := t.rest[0]
	if a.isOfEarlierHistory(next) && !a.chained(next) {
		return r.judgeHistory(ctx, a, t)
	}
	explained, noted, err := r.passedOver(ctx, a, next)
	if err != nil {
		return t, r.notBegun(ctx, err)
	}
	if !explained && !a.chained(next) {
		return t, r.failed(r.missing(a, next))
	}
	if !noted {
		t.since = next.Sequence - 1
	}
	return t, nil
}

// isOfEarlierHistory reports that the source has lost commits since the last record was applied, or may have: see
// cursor.Histories. No seek moves the numbers as far.
func (a applied) isOfEarlierHistory(d processor.Delivery) bool {
	return d.Sequence-a.sequence > cursor.HistoryGap/2
}

// judgeHistory handles a source that was promoted or restored, and that does not continue at the target's position.
// Records may have been applied whose advances of the cursor were lost. They come again if their rows are still
// there, perhaps one by one. Each must be the very record that was applied under its number, by a dedup key that
// holds its time of creation. Or it is a record that was refused then; judgeDone finds out whether it is there by
// now. Otherwise the cursor may be further on. That is right if it is further by no more than was passed over; else
// the target has lost more than the source. In all other cases nothing is known about the records that follow.
func (r *Remote) judgeHistory(ctx context.Context, a applied, t turn) (turn, error) {
	for len(t.rest) > 0 && !a.chained(t.rest[0]) {
		again, err := r.comesAgain(ctx, a, t.rest[0])
		if err != nil {
			return t, r.notBegun(ctx, err)
		}
		if !again {
			break
		}
		t.done++
		t.rest = t.rest[1:]
	}
	if len(t.rest) == 0 {
		return t, nil
	}
	next := t.rest[0]
	explained, _, err := r.passedOver(ctx, a, next)
	if err != nil {
		return t, r.notBegun(ctx, err)
	}
	switch {
	case explained, a.chained(next):
		t.since = t.rest[0].Sequence - 1
		return t, nil
	case a.isBehind(next):
		return t, r.failed(r.missing(a, next))
	default:
		return t, r.failed(r.ofEarlierHistory(a, next))
	}
}

// comesAgain reports that a record of a new history was applied, or refused, in the last one.
func (r *Remote) comesAgain(ctx context.Context, a applied, d processor.Delivery) (bool, error) {
	gap := a.gap(d)
	if d.CreatedAt.IsZero() || gap >= 0 {
		return false, nil
	}
	if a.recent.has(d, -gap) || gap == -1 && a.dedupKey == d.DedupKey() {
		return true, nil
	}
	l, err := r.letter(ctx, d.Process, a.numberOf(d))
	return l.noted && l.dedupKey == d.DedupKey(), err
}

// refusedSQL counts the records that failed in the target and were not applied since, with numbers in (from, to]. It
// also counts those of them up to a third number. It uses the primary key.
const refusedSQL = `/* sql.refused */
SELECT pg_catalog.count(*), pg_catalog.count(*) FILTER (WHERE sequence OPERATOR(pg_catalog.<=) $4)
FROM {schema}.ordered_dispatcher_refused
WHERE process_name OPERATOR(pg_catalog.=) $1 AND sequence OPERATOR(pg_catalog.>) $2 AND sequence OPERATOR(pg_catalog.<=) $3`

// refusedWithin returns the counts of refusedSQL.
func (r *Remote) refusedWithin(ctx context.Context, process string, from, to, upTo int64) (all, part int64, err error) {
	var batch pgconn.Batch
	queue(&batch, r.sql(refusedSQL), process, number(from), number(to), number(upTo))
	row, err := r.ask(ctx, &batch, 2)
	if err != nil {
		return 0, 0, err
	}
	if row == nil {
		return 0, 0, errAnswer
	}
	if all, err = strconv.ParseInt(string(row[0]), 10, 64); err != nil {
		return 0, 0, err
	}
	part, err = strconv.ParseInt(string(row[1]), 10, 64)
	return all, part, err
}

// passedOver reports whether no record is missing for the numbers between the last applied record and another one.
// Either their records failed here and were skipped or put aside (each is noted), or they belong to the gap that a
// seek leaves, which begins an epoch.
func (r *Remote) passedOver(ctx context.Context, a applied, d processor.Delivery) (explained, noted bool, err error) {
	gap := a.gap(d)
	if gap <= 0 { // the source was restored
		return false, false, nil
	}
	left := gap % cursor.SeekGap
	all, part, err := r.refusedWithin(ctx, d.Process, a.sequence, a.sequence+gap, a.sequence+left)
	noted = all == gap
	sought := gap >= cursor.SeekGap && d.Epoch > a.epoch && part == left
	return noted || sought, noted, err
}

// queue adds a statement with its arguments as text.
func queue(batch *pgconn.Batch, sql string, args ...string) {
	values := make([][]byte, len(args))
	for i, arg := range args {
		values[i] = []byte(arg)
	}
	batch.ExecParams(sql, values, nil, nil, nil)
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// sql puts the schema into a statement.
func (r *Remote) sql(text string) string {
	return strings.ReplaceAll(text, "{schema}", pgx.Identifier{r.config.Schema}.Sanitize())
}

// notBegun is a failure before anything was applied.
func (r *Remote) notBegun(ctx context.Context, err error) error {
	if !isServers(err) {
		r.drop()
	}
	if isUnencodable(err) {
		return r.unencodable(err)
	}
	said := fmt.Errorf("%s: nothing was written: %w%s", r, because(ctx, err), r.nextStep(err))
	return ours(err, said)
}
