package retention

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Erasure counts what Erase erased.
type Erasure struct {
	table.Erased
	// Letters are dead letters that were emptied.
	Letters int64
	// Calls that a shadow recorded were deleted.
	Calls int64
	// Blanked are the columns that were emptied; none if the rows were deleted.
	Blanked []string
	// Files reports that the rule writes archive files, which may have the key still.
	Files bool
	// Processes have an event of it in their history; none if nothing has the key.
	Processes []string
}

// empty reports that nothing has the key.
func (e Erasure) empty() bool { return e.Rows+e.Archived+e.Letters+e.Calls == 0 }

// errRehearsed ends the transaction of a dry run.
var errRehearsed = errors.New("rehearsed")

// Erase erases a person's data from rows that every reader has delivered: it deletes the rows of a key or blanks
// columns of them, empties resolved dead letters of the key, deletes the calls that shadows recorded of the rows, and
// writes an event into the history of each reader, in one transaction of at most 20 s. The event does not have the key.
// There is none if nothing has the key. Of the rule in c, only Archive counts. If a row or
// a dead letter of the key is undelivered, nothing is erased (table.ErrUndelivered, operator.ErrOpenLetter). Archive
// files are not changed. A dry run erases and rolls back. d needs a reason.
func Erase(ctx context.Context, c Config, e table.Erase, d cursor.Decision) (done Erasure, err error) {
	if d, err = d.Reasoned(); err != nil {
		return done, err
	}
	if err := c.known(); err != nil {
		return done, err
	}
	done.Blanked, done.Files = e.Blank, c.Rule.Mode == ModeFiles
	p := pass{Config: c}
	if p.pruning, err = c.Source.Pruning(ctx, c.Rule.Keep, p.needs()); err != nil {
		return done, err
	}
	e.Archive = c.Rule.Archive
	err = p.inTx(ctx, func(ctx context.Context, tx pgx.Tx) (none operator.Removal, err error) {
		keyed, err := p.pruning.Keyed(ctx, tx, e)
		if err != nil {
			return none, err
		}
		if done.Erased, err = p.pruning.Erase(ctx, tx, e); err != nil {
			return none, err
		}
		if done.Letters, err = c.Operator.EraseLetters(ctx, tx, letters(keyed, e.Key)); err != nil {
			return none, err
		}
		if c.EraseCalls != nil {
			if done.Calls, err = c.EraseCalls(ctx, tx, keyed); err != nil {
				return none, err
			}
		}
		if done.empty() {
			return none, nil
		}
		done.Processes = c.processes()
		if err := c.Operator.NoteErased(ctx, tx, done.Processes, d, map[string]any{
			"table": p.pruning.Table(), "by": e.By, "blanked": e.Blank, "rows": done.Rows, "archived": done.Archived, "dead_letters": done.Letters, "calls": done.Calls,
		}); err != nil {
			return none, err
		}
		if d.DryRun {
			return none, errRehearsed
		}
		return none, nil
	})
	if errors.Is(err, errRehearsed) {
		err = nil
	}
	return done, err
}

// processes are the names of the readers.
func (c Config) processes() (all []string) {
	for _, r := range c.Readers {
		all = append(all, r.Process)
	}
	return all
}

// letters are the dead letters of the rows to erase. Of a process whose columns.key has the key, those whose row is gone
// count as well.
func letters(keyed []table.Keyed, key string) (all []operator.LettersOf) {
	for _, k := range keyed {
		of := operator.LettersOf{Process: k.Process, Table: k.Table, Records: k.IDs}
		if k.ByKey {
			of.Key = key
		}
		all = append(all, of)
	}
	return all
}
