package retention

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/knob"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Rule is what becomes of the rows of one table that every process has delivered. Zero values mean defaults.
type Rule struct {
	// Keep is how old a row must be, by its created_at: the column that Config.Source has.
	//
	// In the file: how old a row must be, by its `created_at`. `168h` is a week. If processes have several
	// columns for it, the first process of the file with the order `created_at` decides.
	Keep time.Duration `knob:"keep" need:"keep: 168h" min:"1s" max:"876000h"`
	// Mode is what happens to the rows. ModeDelete deletes them. ModeDrop drops partitions whose range is over.
	// ModeMark marks them in Column. ModeArchive moves them into the table Archive, and ModeFiles into compressed
	// files in Directory, or on the shelf of the pass.
	//
	// In the file: `delete` them, `drop` partitions whose range is over, `mark` them in a column, move them to an
	// `archive` table, or move them to compressed `files`.
	Mode Mode `knob:"mode" default:"delete" oneof:"delete drop mark archive files"`
	// Column is the column that ModeMark sets: a timestamptz that is NULL, or a boolean that is not true.
	//
	// In the file: the column that `mode: mark` sets: a timestamptz that is NULL, or a boolean that is not true.
	Column string `knob:"column" like:"column: deleted_at"`
	// Archive is the table of ModeArchive, with its schema. It has the columns of the source's table.
	//
	// In the file: the table of `mode: archive`, with its schema. It has the columns of the source's table.
	Archive string `knob:"archive" like:"archive: public.bookings_archive"`
	// Directory is where ModeFiles writes: a directory, or the URL of an object store, which Config.Shelf has opened. It
	// belongs to one database alone.
	//
	// In the file: where `mode: files` writes: a directory, or the URL of an
	// [object store](docs/producers.md#object-stores). It belongs to one database alone.
	Directory string `knob:"directory" like:"directory: /var/lib/dispatcher/archive"`
	// Batch is how many rows one transaction removes. Deliveries of newer rows wait for it.
	//
	// In the file: how many rows one transaction removes. Deliveries of newer rows wait for it.
	Batch int `knob:"batch" default:"1_000" min:"1" max:"10_000"`
}

// Mode is what happens to the rows of a rule.
type Mode string

// The modes.
const (
	ModeDelete  Mode = "delete"
	ModeDrop    Mode = "drop"
	ModeMark    Mode = "mark"
	ModeArchive Mode = "archive"
	ModeFiles   Mode = "files"
)

// Filled returns the rule with its defaults.
func (r Rule) Filled() Rule {
	knob.Fill(&r)
	return r
}

// Check returns every fault of a rule.
func (r Rule) Check() error {
	r = r.Filled()
	faults := knob.Faults{knob.Check(r)}
	for _, own := range []struct {
		key, value string
		mode       Mode
	}{{"column", r.Column, ModeMark}, {"archive", r.Archive, ModeArchive}, {"directory", r.Directory, ModeFiles}} {
		faults.If(own.value == "" && r.Mode == own.mode, "mode %s needs the key %s", own.mode, own.key)
		faults.If(own.value != "" && r.Mode != own.mode, "%s is only for mode %s, and the mode is %s: remove one of them", own.key, own.mode, r.Mode)
	}
	faults.If(r.Archive != "" && !strings.Contains(r.Archive, "."), "archive %s has no schema: write public.%[1]s", r.Archive)
	faults.If(r.Directory != "" && !filepath.IsAbs(r.Directory) && !isURL(r.Directory),
		"directory %s is not an absolute path, nor the URL of an object store", r.Directory)
	return errors.Join(faults...)
}

// Fits returns an error if the rule cannot be carried out on a table, whatever rows it has: a *table.Misfit if SQL
// changes that. It needs no right to the tables.
func (r Rule) Fits(ctx context.Context, tx pgx.Tx, p *table.Pruning) error {
	switch r.Mode {
	case ModeDrop:
		return p.Droppable(ctx, tx)
	case ModeMark:
		return p.Markable(ctx, tx, r.Column)
	case ModeArchive:
		return p.Archivable(ctx, tx, r.Archive)
	default:
		return nil
	}
}

// isURL reports whether a directory is in an object store.
func isURL(directory string) bool { return strings.Contains(directory, "://") }

// place is where the rows are afterwards; "" if they are gone for good.
func (r Rule) place() string {
	switch r.Mode {
	case ModeArchive:
		return "table " + r.Archive
	case ModeFiles:
		return "files in " + r.Directory
	case ModeMark:
		return fmt.Sprintf("the table, marked in column %s", r.Column)
	default:
		return ""
	}
}
