package migrations

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// pending returns the migrations that are not applied, in order.
func (s session) pending(ctx context.Context) ([]Migration, error) {
	known, err := list()
	if err != nil {
		return nil, err
	}
	applied, err := s.config.appliedOn(ctx, s.conn)
	if err != nil {
		return nil, err
	}
	latest := newest(slices.Collect(maps.Keys(applied)))
	known = slices.DeleteFunc(known, func(m Migration) bool { return !applied[m.Version].IsZero() })
	for _, m := range known {
		if m.Version < latest {
			return nil, fmt.Errorf("%s is not applied, but the later version %d is: this program cannot go on from there; use the one that applied it", m.Name, latest)
		}
	}
	return known, nil
}

// last returns the applied migration with the highest version; nil if there is none.
func (s session) last(ctx context.Context) (*Migration, error) {
	known, err := list()
	if err != nil {
		return nil, err
	}
	applied, err := s.config.appliedOn(ctx, s.conn)
	if err != nil || len(applied) == 0 {
		return nil, err
	}
	version := newest(slices.Collect(maps.Keys(applied)))
	for _, m := range known {
		if m.Version == version {
			return &m, nil
		}
	}
	return nil, fmt.Errorf("version %d was applied by a newer program: use that one to take it back", version)
}

func newest(versions []int64) int64 {
	return slices.Max(append(versions, 0))
}

const appliedUpSQL = `/* migrations.applied_up */
INSERT INTO {table} (version_id, is_applied)
VALUES ($1, true)`

const appliedDownSQL = `/* migrations.applied_down */
DELETE FROM {table}
WHERE version_id OPERATOR(pg_catalog.=) $1`

func (s session) up(ctx context.Context, m Migration) error {
	return s.step(ctx, m, "Up", appliedUpSQL)
}

func (s session) down(ctx context.Context, m Migration) error {
	return s.step(ctx, m, "Down", appliedDownSQL)
}

// step runs one way of a file and records it in the version table, in one transaction. The file is sent whole, by the
// simple protocol: the server parses each statement after it has run the ones before it.
func (s session) step(ctx context.Context, m Migration, way, note string) error {
	text, err := files.ReadFile(m.Name)
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, s.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, ways(string(text))[way], pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, strings.ReplaceAll(note, "{table}", s.config.table()), m.Version)
		return err
	})
}
