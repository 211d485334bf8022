package migrations

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
)

//go:embed *.sql
var files embed.FS

// Migration is one file of SQL.
type Migration struct {
	Version int64
	// Name is the name of the file; "" if this program has no such file.
	Name string
	// AppliedAt is when it was applied, by the database's clock; zero if it is not applied.
	AppliedAt time.Time
}

// Up applies the migrations that are not applied yet and returns them, in order. A migration that fails leaves
// nothing of itself behind; those before it stay applied. Up bounds its waits for a connection, for another migration
// and for tables that are in use, and the error names the wait. Sessions that use the tables wait for a migration for
// a tenth of a second at a time: it gives up and tries again, for a minute in all. A migration that has its tables
// goes on until it is done, or until ctx ends.
func Up(ctx context.Context, config Config) ([]Migration, error) {
	var done []Migration
	err := migrate(ctx, config, func(s session) error {
		pending, err := s.pending(ctx)
		if err != nil {
			return err
		}
		for _, m := range pending {
			if err := s.up(ctx, m); err != nil {
				return fmt.Errorf("%s: %w", m.Name, err)
			}
			done = append(done, m)
		}
		return nil
	})
	return done, explain("migrate up", err)
}

// Down undoes the last applied migration and returns it; nil if there is none. The content of its tables is lost: for
// the first migration that is every cursor.
func Down(ctx context.Context, config Config) (*Migration, error) {
	var undone *Migration
	err := migrate(ctx, config, func(s session) error {
		last, err := s.last(ctx)
		if err != nil || last == nil {
			return err
		}
		if err := s.down(ctx, *last); err != nil {
			return fmt.Errorf("%s: %w", last.Name, err)
		}
		undone = last
		return nil
	})
	return undone, explain("migrate down", err)
}

// appliedSQL reads the version table. Its times have no zone: those that migrate writes are in UTC.
const appliedSQL = `/* migrations.applied */
SELECT version_id, (extract(epoch FROM tstamp AT TIME ZONE 'UTC') * 1000000)::bigint
FROM {table}
WHERE is_applied AND version_id > 0
ORDER BY version_id
LIMIT 10000`

// Status returns every migration, in order. After them it returns, without a name, those that only a newer version of
// this program knows. It changes nothing and takes no lock, so it works with any role that may read the version
// table, on a standby and through a pooler.
func Status(ctx context.Context, config Config) ([]Migration, error) {
	config = config.withDefaults()
	known, err := list()
	if err != nil {
		return nil, explain(statusVerb, err)
	}
	applied, err := applied(ctx, config)
	if err != nil {
		return nil, explain(statusVerb, err)
	}
	for i, m := range known {
		known[i].AppliedAt = applied[m.Version]
		delete(applied, m.Version)
	}
	for _, version := range slices.Sorted(maps.Keys(applied)) {
		known = append(known, Migration{Version: version, AppliedAt: applied[version]})
	}
	return known, nil
}

func applied(ctx context.Context, config Config) (map[int64]time.Time, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	connConfig, err := config.connConfig()
	if err != nil {
		return nil, err
	}
	delete(connConfig.RuntimeParams, "search_path") // not needed here, and a pooler refuses it
	connConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(ctx, connConfig)
	if err != nil {
		return nil, config.unconnected(ctx, err)
	}
	defer conn.Close(ctx)
	at, err := config.appliedOn(ctx, conn)
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == "42P01" {
		return nil, nil // without a version table nothing is applied
	}
	return at, err
}

// appliedOn returns when each applied migration was applied.
func (c Config) appliedOn(ctx context.Context, conn *pgx.Conn) (map[int64]time.Time, error) {
	at := map[int64]time.Time{}
	var version, micros int64
	err := answer.Within(ctx, c.waits.answer, func(ctx context.Context) error {
		return prepared.Within(ctx, conn, func(tx pgx.Tx) error {
			rows, _ := tx.Query(ctx, strings.ReplaceAll(appliedSQL, "{table}", c.table()))
			_, err := pgx.ForEachRow(rows, []any{&version, &micros}, func() error {
				at[version] = time.UnixMicro(micros).UTC()
				return nil
			})
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read the version table: %w", err)
	}
	return at, nil
}

// list returns the embedded migrations in order.
func list() ([]Migration, error) {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	migrations := make([]Migration, len(names))
	for i, name := range names {
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("file %s does not begin with its number: %w", name, err)
		}
		migrations[i] = Migration{Version: version, Name: name}
	}
	return migrations, nil
}
