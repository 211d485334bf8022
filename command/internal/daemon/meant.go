package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// meantKey is the key under which the settings note which table source.table meant, if that has no schema: the name
// with the schema that the search_path gave it.
const meantKey = "source.table means"

// meant returns which table the name of a process's table meant when the process last ran, under this name or an
// earlier one. It returns "" if that is not known, or if another name was configured. If the cursor tables are
// missing, of an older version, or not readable, the process cannot run at all, and reports that itself.
func (c Config) meant(ctx context.Context, pool *pgxpool.Pool, p Process) (string, error) {
	store, err := cursor.NewStore(pool, cursor.Config{Schema: c.Schema})
	if err != nil {
		return "", err
	}
	last, found, err := store.Last(ctx, p.Name, "configure")
	var pgErr *pgconn.PgError
	switch {
	case errors.As(err, &pgErr) && slices.Contains([]string{"42P01", "3F000", "42703", "42501"}, pgErr.Code):
		return "", nil
	case err != nil || !found:
		return "", err
	}
	var was settings
	if err := json.Unmarshal(last.Detail, &was); err != nil {
		return "", fmt.Errorf("read the last configuration of process %q: %w", p.Name, err)
	}
	if was["source.table"] != p.Source.Table {
		return "", nil
	}
	return was[meantKey], nil
}

// means returns which table the name of a process's table means now, so that it can be noted. While that is not
// certain, the earlier meaning stays noted.
func (c Config) means(ctx context.Context, pool *pgxpool.Pool, p Process) (string, error) {
	source, err := c.source(p, pool, nil)
	if err != nil {
		return "", err
	}
	if source.Qualified() {
		return "", nil
	}
	name, err := source.Name(ctx)
	if err != nil || name != "" {
		return name, err
	}
	return c.meant(ctx, pool, p)
}
