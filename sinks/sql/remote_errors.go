package sql

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// Errors of Remote.DeliverBatch, with nothing applied. None of them is about the record. The record is tried again
// until somebody has done what the error asks for, and no dead letter is made of it (processor.Unreached). At
// ErrNotKept the process halts.
var (
	// ErrFenced: the target has records of a later epoch.
	ErrFenced = errors.New("the target has records of a later epoch")
	// ErrMissing: records before this one are not in the target.
	ErrMissing = errors.New("records are missing in the target")
	// ErrHistory: the source may have lost records that are in the target.
	ErrHistory = errors.New("the target may have records that the source has lost")
	// ErrForeign: the target has another record under this one's number.
	ErrForeign = errors.New("the target has another record of this number")
	// ErrOrigin: the target has records of another cursor under the name of the process.
	ErrOrigin = errors.New("the target has records of another cursor under this name")
	// ErrUnproven: it is not known whether the target has a dead letter.
	ErrUnproven = errors.New("the sink cannot know whether the target has this record")
	// ErrNotKept: the target does not keep the sink's notes.
	ErrNotKept = errors.New("the target did not keep what the sink noted")
)

func (r *Remote) fenced(a applied, d processor.Delivery) error {
	return fmt.Errorf("%w (%d, and this is epoch %d): another worker has taken over, or the cursor is an older copy than this target; "+
		"nothing was written. If the cursor was restored: `ordered-dispatcher seek %s --to-position %s -c FILE --reason …` goes on after what is there, and then %s",
		ErrFenced, a.epoch, d.Epoch, visible.Shell(d.Process), visible.Quoted(string(a.position)), r.sql(fmt.Sprintf("UPDATE {schema}.ordered_dispatcher_applied SET epoch = 0 WHERE process_name = %s", quote(d.Process))))
}

// unknownProcess is the error for a target without a row for a process that has delivered before.
func (r *Remote) unknownProcess(d processor.Delivery) error {
	err := fmt.Errorf("%w: it knows nothing of process %q, whose next record is number %d. If the target is the wrong one, correct that. "+
		"If it was restored to before the first record: `ordered-dispatcher seek %s --to-start -c FILE --reason …`, and then what the next error names. "+
		"If the process had another name there: %s (with that name)", ErrMissing, d.Process, d.Sequence, visible.Shell(d.Process), r.move(d))
	if isReplay(d) {
		return fmt.Errorf("%w. If it is to deliver there from now on, have a worker deliver its next record first: a replay does not show how far the process has come", err)
	}
	return fmt.Errorf("%w. If the target is to have what follows, and nothing of what the cursor has passed: %s", err,
		r.sql(fmt.Sprintf("INSERT INTO {schema}.ordered_dispatcher_applied (process_name, position, sequence, epoch, since) VALUES (%s, %s, %[3]d, 0, %[3]d)",
			quote(d.Process), quote(string(d.After)), d.Sequence-1)))
}

// move returns the SQL that makes the notes follow a rename.
func (r *Remote) move(d processor.Delivery) string {
	return r.sql(fmt.Sprintf("UPDATE {schema}.ordered_dispatcher_applied SET process_name = %[1]s WHERE process_name = 'OLD NAME'; "+
		"UPDATE {schema}.ordered_dispatcher_refused SET process_name = %[1]s WHERE process_name = 'OLD NAME'", quote(d.Process)))
}

// another lists the ways out: one for two processes that both exist, and, if the other one is gone, one for each way
// in which it got the name. A replay must not be the first to write notes.
func (r *Remote) another(a applied, d processor.Delivery) error {
	drop := r.sql(fmt.Sprintf("DELETE FROM {schema}.ordered_dispatcher_refused WHERE process_name = %[1]s; DELETE FROM {schema}.ordered_dispatcher_applied WHERE process_name = %[1]s", quote(d.Process)))
	err := fmt.Errorf("%w: those of process %q are of origin %s, up to number %d, and record %q is of origin %s: a process of that name delivers from another database, or "+
		"had the name before. Nothing was written. If both live, give this one another name: `ordered-dispatcher process rename %s NEW`. If the other one is gone "+
		"and this one had another name there: %s; %s (with that name)",
		ErrOrigin, d.Process, visible.Quoted(a.origin), a.sequence, visible.Cut(d.ID), visible.Quoted(d.Origin), visible.Shell(d.Process), drop, r.move(d))
	if isReplay(d) {
		return err
	}
	return fmt.Errorf("%w. If the other one is gone and this record is not there yet, this has it come next: %s", err,
		r.sql(fmt.Sprintf("DELETE FROM {schema}.ordered_dispatcher_refused WHERE process_name = %[1]s; UPDATE {schema}.ordered_dispatcher_applied "+
			"SET origin = %[2]s, position = %[3]s, sequence = %[4]d, since = %[4]d, epoch = 0, dedup_key = NULL, recent = NULL WHERE process_name = %[1]s",
			quote(d.Process), quote(d.Origin), quote(string(d.After)), d.Sequence-1)))
}

func (r *Remote) missing(a applied, d processor.Delivery) error {
	this := fmt.Sprintf("this is number %d", d.Sequence)
	if a.isOfEarlierHistory(d) {
		this = fmt.Sprintf("%d numbers lie between these and this record, of which each seek has used %d. A promotion or a restore of the source has made it number %d", a.gap(d), cursor.SeekGap, d.Sequence)
	}
	return fmt.Errorf("%w: it has those of process %q up to number %d, and %s. The target was restored to an earlier state, or those between failed "+
		"while it was away. To have them delivered: `ordered-dispatcher seek %s --to-position %s -c FILE --reason …`. If they need not come: %s",
		ErrMissing, d.Process, a.sequence, this, visible.Shell(d.Process), visible.Quoted(string(a.position)),
		r.sql(fmt.Sprintf("INSERT INTO {schema}.ordered_dispatcher_refused (process_name, sequence, applied) SELECT %s, generate_series(%d, %d), NULL ON CONFLICT DO NOTHING",
			quote(d.Process), a.sequence+1, a.sequence+a.gap(d))))
}

func (r *Remote) ofEarlierHistory(a applied, d processor.Delivery) error {
	return fmt.Errorf("%w: a standby was promoted or the database was restored, and process %q goes on after position %s. The target is at %s, and what it has between the two may be rows that are gone. "+
		"Compare it with the table. If they agree up to there: `ordered-dispatcher seek %s --to-position %s -c FILE --reason …`. "+
		"Else take out of the target what is not in the table, and what follows the position from which records shall come again, and with that position instead of the first one here: %s", ErrHistory, d.Process, visible.Cut(string(d.After)), visible.Cut(string(a.position)),
		visible.Shell(d.Process), visible.Quoted(string(a.position)),
		r.standAt(a, d))
}

func (r *Remote) foreign(a applied, d processor.Delivery) error {
	return fmt.Errorf("%w: process %q has come to number %d at position %s there, and record %q of position %s is number %d here. Another source has a process "+
		"of that name, or this one was restored, or rows were deleted before they were delivered. Give one of them another name, or go on after what is there: "+
		"`ordered-dispatcher seek %s --to-position %s -c FILE --reason …`", ErrForeign, d.Process, a.sequence, visible.Cut(string(a.position)), visible.Cut(d.ID), visible.Cut(string(d.Position)), d.Sequence, visible.Shell(d.Process), visible.Quoted(string(a.position)))
}

// notKept halts the process: the cause that drops the notes now would also drop those of the next attempt.
func (r *Remote) notKept() error {
	return processor.Refused(r.failed(fmt.Errorf("%w, so nothing was written: look for a trigger, a rule or a row security policy at %s and %s (`\\d` in psql lists them), "+
		"and for a view in the place of one. Drop it, then `ordered-dispatcher retry`", ErrNotKept, r.sql("{schema}.ordered_dispatcher_applied"), r.sql("{schema}.ordered_dispatcher_refused"))))
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// failed adds the target to an error.
func (r *Remote) failed(err error) error { return fmt.Errorf("%s: %w", r, err) }

// unsent is a failure before anything was sent.
func (r *Remote) unsent(err error) error {
	return ours(err, processor.Unreached(fmt.Errorf("%s: nothing was sent: %w%s", r, outcome.Known(err), r.nextStep(err))))
}

// ours marks an error as a refusal of us if the server's error is about our login, our rights or the name of the
// database.
func ours(word, err error) error {
	if code := codeOf(word); class(code) == "28" || code == "3D000" || code == insufficientPrivilege {
		return processor.Refused(err)
	}
	return err
}

// unknown is a failure that may have come after the commit. The next attempt finds out.
func (r *Remote) unknown(ctx context.Context, err error) error {
	return fmt.Errorf("%s: it may have the record, which the next attempt finds out: %w%s", r, because(ctx, err), r.nextStep(err))
}

// because adds why the call was ended.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w (%w)", err, cause)
	}
	return err
}

// isUnencodable reports that a text has a character that the target's encoding lacks.
func isUnencodable(err error) bool { return codeOf(err) == "22P05" }

// unencodable halts the process. If the record were put aside it would look lost, because the target cannot note that
// either.
func (r *Remote) unencodable(err error) error {
	return processor.Refused(fmt.Errorf("%s: nothing was written, because its encoding lacks a character of the process's name, or of the record's id or position, "+
		"which it has to note: %w; deliver to a database in UTF8", r, err))
}

// old returns the fix for tables of an earlier version.
func (r *Remote) old() string {
	return "its tables are of an earlier version: as the owner of the schema run " + r.sql(alterSQL)
}

// nextStep returns the fix for an error about the target itself.
func (r *Remote) nextStep(err error) string {
	switch code := codeOf(err); {
	case code == "25006":
		return "; it cannot be written to: point url at the primary, or name all hosts in it"
	case code == "42P01" || code == "3F000":
		return "; create the sink's tables there, as `ordered-dispatcher grants` and `doctor` print them"
	case code == "42703":
		return "; " + r.old()
	case code == insufficientPrivilege:
		return "; grant its role what `ordered-dispatcher grants` prints"
	case class(code) == "28":
		return "; correct user and password in url, or let the user in (pg_hba.conf)"
	case code == "3D000":
		return "; correct the database in url, or create it"
	default:
		return ""
	}
}
