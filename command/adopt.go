package command

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/prove"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// oldWay is the way that a process takes over from: exactly one of its flags is set.
type oldWay struct {
	DispatchedAt string  `xor:"old" required:"" placeholder:"COLUMN" help:"A loop that marks rows which it has sent: a boolean, or a column that is NULL until then."`
	AfterID      string  `name:"after-id" xor:"old" required:"" placeholder:"ID" help:"A loop that reads rows with a higher id: the last id that it has sent."`
	Watermill    *string `xor:"old" required:"" placeholder:"GROUP" help:"A consumer group of watermill-sql."`
	Debezium     string  `xor:"old" required:"" placeholder:"SLOT" help:"Debezium, with this replication slot."`
	Sequin       string  `xor:"old" required:"" placeholder:"SLOT" help:"Sequin, with this replication slot."`
	After        *string `xor:"old" required:"" placeholder:"POSITION" help:"Any other: the position up to which everything was delivered."`
}

type adoptCommand struct {
	subject
	oldWay
	WatermillOffsets string        `placeholder:"TABLE" help:"With --watermill: the table of its offsets, if it is not called watermill_offsets_TOPIC."`
	LSN              string        `name:"lsn" placeholder:"LSN" help:"With --debezium: the lsn_commit of the offset that the connector has stored, such as 0/16B3748, if it is after the slot's."`
	Wait             time.Duration `default:"30s" help:"How long to wait for open transactions, and for the slot to be confirmed."`
	Watch            time.Duration `default:"3s" help:"How long to watch for signs that the old way still runs."`
	JSON             bool          `name:"json" help:"Print JSON on one line."`
}

// lsn matches a place of the log as PostgreSQL writes it.
var lsn = regexp.MustCompile(`^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}$`)

func (o oldWay) old(c *adoptCommand) prove.Old {
	switch {
	case o.DispatchedAt != "":
		return prove.Flag{Column: o.DispatchedAt}
	case o.AfterID != "":
		return prove.IDLoop{Last: o.AfterID}
	case o.Watermill != nil:
		return prove.Watermill{Group: *o.Watermill, Offsets: c.WatermillOffsets}
	case o.Debezium != "":
		return prove.Debezium(o.Debezium, c.LSN)
	case o.Sequin != "":
		return prove.Sequin(o.Sequin)
	default:
		return prove.Given{Position: cursor.Position(*o.After)}
	}
}

// Errors of adopt, whose cause is printed before.
var (
	errStillRuns = errors.New("the old way still runs, so there is no position yet")
	errUnproven  = errors.New("the position is not proven: see above")
)

// Run is called by kong.
func (c *adoptCommand) Run(ctx context.Context, sys system) error {
	switch {
	case c.WatermillOffsets != "" && c.oldWay.Watermill == nil:
		return &daemon.UsageError{Err: errors.New("--watermill-offsets needs --watermill")}
	case c.LSN != "" && c.oldWay.Debezium == "":
		return &daemon.UsageError{Err: errors.New("--lsn needs --debezium")}
	case c.LSN != "" && !lsn.MatchString(c.LSN):
		return &daemon.UsageError{Err: fmt.Errorf("--lsn %s is not a place of the log, such as 0/16B3748. Debezium stores it as a decimal number: SELECT '0/0'::pg_lsn + NUMBER", c.LSN)}
	case c.Wait < 0 || c.Watch < 0:
		return &daemon.UsageError{Err: errors.New("--wait and --watch must not be negative")}
	}
	config, source, err := c.subject.subject(sys)
	if err != nil {
		return err
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	var a prove.Adoption
	err = config.WithPool(ctx, "adopt", func(ctx context.Context, pool *pgxpool.Pool) error {
		a, err = prove.Adopt(ctx, pool, prove.AdoptConfig{Table: source, Old: c.old(c), Wait: c.Wait, Watch: c.Watch})
		return err
	})
	switch {
	case errors.Is(err, prove.ErrOld):
		return &daemon.UsageError{Err: err}
	case err != nil:
		return c.refused(err)
	}
	process := c.Process
	if process == "" && len(config.Processes) == 1 {
		process = config.Names()[0]
	}
	if c.JSON {
		err = prove.PrintJSON(sys.stdout, a)
	} else {
		err = prove.PrintAdoption(sys.stdout, sys.out().Width, a, prove.Commands{Process: process, File: c.Config})
	}
	switch {
	case err != nil:
		return fmt.Errorf("print: %w", err)
	case a.Running != "":
		return errStillRuns
	case a.Unproven != "" && c.oldWay.After == nil:
		return errUnproven
	}
	return nil
}
