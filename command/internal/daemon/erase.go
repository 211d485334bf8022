package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	rules "github.com/ordered-dispatcher/ordered-dispatcher/retention"
	"github.com/ordered-dispatcher/ordered-dispatcher/shadow"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Erase erases a person's data from the delivered rows of a table that a process of the file reads: see rules.Erase.
func Erase(ctx context.Context, c Config, name string, e table.Erase, d cursor.Decision) (rules.Erasure, error) {
	i := slices.IndexFunc(c.Processes, func(p Process) bool { return p.Source.Table == name })
	if i < 0 {
		return rules.Erasure{}, usage("no process of the file reads a table named %s: write it as source.table has it", visible.Line(name))
	}
	if e.By == "" {
		e.By = c.Processes[i].Source.Named().Columns.Key
	}
	if e.By == "" {
		return rules.Erasure{}, usage("no source.columns.key is set for %s: name the column of the key with --by", visible.Line(name))
	}
	rule := TableRule{Table: name}
	if i := slices.IndexFunc(c.Rules, func(r TableRule) bool { return r.Table == name }); i >= 0 {
		rule = c.Rules[i]
	}
	pool, store, err := c.open(ctx)
	if err != nil {
		return rules.Erasure{}, err
	}
	defer pool.Close()
	config, err := c.passConfig(ctx, pool, store, rule, len(e.Blank) == 0)
	if err != nil {
		return rules.Erasure{}, Reachable(err)
	}
	config.EraseCalls = c.eraseCalls
	done, err := rules.Erase(ctx, config, e, d)
	if errors.Is(err, cursor.ErrUncertain) {
		err = uncertain(config.Readers[0].Process, err)
	}
	return done, Reachable(err)
}

// eraseCalls deletes what the shadows of the file have recorded of records.
func (c Config) eraseCalls(ctx context.Context, tx pgx.Tx, keyed []table.Keyed) (erased int64, err error) {
	for _, p := range c.Processes {
		i := slices.IndexFunc(keyed, func(k table.Keyed) bool { return k.Process == p.Name })
		sink, is := p.Sink.Config.(recorder)
		if !is || i < 0 || len(keyed[i].Positions) == 0 {
			continue
		}
		calls, err := shadow.Erase(ctx, tx, sink.table, p.Name, keyed[i].Positions)
		if err != nil {
			return erased, err
		}
		erased += calls
	}
	return erased, nil
}

// PrintErased writes the result of an erasure for people.
func PrintErased(w io.Writer, name string, done rules.Erasure, dry bool) error {
	verb := "erased"
	if len(done.Blanked) > 0 {
		verb = "emptied in " + visible.Line(strings.Join(done.Blanked, ", "))
	}
	if dry {
		verb = "would be " + verb
	}
	text := "no row and no dead letter has this key, so nothing was erased or noted"
	if len(done.Processes) > 0 {
		calls := ""
		if done.Calls > 0 {
			calls = ", " + amount(int(done.Calls), "recorded call")
		}
		text = fmt.Sprintf("%s %s, %s in the archive table, %s%s; noted in the history of %s", amount(int(done.Rows), "row"), verb,
			amount(int(done.Archived), "row"), amount(int(done.Letters), "dead letter"), calls, visible.Line(oneOf(done.Processes)))
	}
	if done.Files {
		text += ". The archive files of the rule are not changed, and may have it"
	}
	_, err := fmt.Fprintf(w, "%s: %s\n", visible.Line(name), text)
	return err
}
