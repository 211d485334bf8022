package table

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgname"
)

// Qualified reports whether the configured name has a schema, so that no search_path decides which table it means.
func (s *Source) Qualified() bool { return s.config.qualified() }

// qualified is Source.Qualified.
func (c Config) qualified() bool {
	parts, err := parseName(c.Table)
	return err == nil && len(parts) == 2
}

// meant returns the table that the name is known to have meant; "" if that is not known, or if the name has its
// schema.
func (s *Source) meant(ctx context.Context) (string, error) {
	if s.config.Meant == nil || s.config.qualified() || s.pinned.Load() != nil {
		return "", nil
	}
	return s.config.Meant(ctx)
}

// settle fixes the table that the name means from now on, or finds why that is not certain. The transaction is under
// our own search_path; cat.path is the role's.
func (s *Source) settle(ctx context.Context, tx pgx.Tx, cat *catalog, meant string) (findings []Finding, err error) {
	if s.pinned.Load() != nil {
		return nil, nil
	}
	found := cat.name()
	switch {
	case s.config.qualified():
	case meant != "" && meant != found:
		findings = refused(fmt.Sprintf("write source.table as %s, or as %s if it is meant", meant, found),
			"table %s meant %s when the process last ran, and is %s now, by the search_path of role %s", s.config.Table, meant, found, cat.role)
	case strings.HasPrefix(cat.schema, "pg_temp_"):
		findings = refused("write source.table with the schema of the table that is meant", "table %s is a temporary table of the worker's own session", s.config.Table)
	default:
		findings, err = s.uncertain(ctx, tx, cat)
	}
	if err == nil && len(findings) == 0 {
		s.pin(cat)
	}
	return findings, err
}

func refused(fix, problem string, args ...any) []Finding {
	return []Finding{finding(Refuse, fix, problem, args...)}
}

// uncertainSQL finds the first schema of the search_path in which another role may put its own table before the one
// that has the name, or has already put it there. It ignores roles that have full control of that table anyway: its
// owner, the owner of the database, superusers, and the role that reads. A schema that does not exist counts if a
// role may create it. A schema that the reading role may not use counts as well, since its owner may grant that.
const uncertainSQL = `/* source.catalog.path */
WITH entry AS (
	SELECT p.place, named.name, n.oid, c.oid AS rel, c.relowner
	FROM unnest($1::text[]) WITH ORDINALITY p (name, place)
	CROSS JOIN LATERAL (SELECT CASE p.name WHEN '$user' THEN current_user ELSE p.name::name END AS name) named
	LEFT JOIN pg_namespace n ON n.nspname = named.name
	LEFT JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = $2
	WHERE n.oid IS NOT NULL OR named.name::text NOT LIKE 'pg\_%'
), pair AS (
	SELECT ahead.name AS ahead, ahead.oid, ahead.rel, ahead.relowner, meant.name AS meant, meant.relowner AS owner, meant.place, ahead.place AS earlier
	FROM entry meant
	JOIN entry ahead ON ahead.place < meant.place
	WHERE meant.rel IS NOT NULL
)
SELECT pair.ahead::text, pair.meant::text, pair.rel IS NOT NULL, pair.oid IS NOT NULL, stranger.name::text
FROM pair
JOIN pg_database d ON d.datname = current_database()
CROSS JOIN LATERAL (
	SELECT '' AS name
	WHERE pair.rel IS NULL AND CASE
		WHEN pair.oid IS NOT NULL THEN has_schema_privilege('public', pair.oid, 'CREATE')
		ELSE has_database_privilege('public', d.oid, 'CREATE') END
	UNION ALL
	SELECT r.rolname
	FROM pg_roles r
	WHERE CASE
		WHEN pair.rel IS NOT NULL THEN r.oid = pair.relowner
		WHEN pair.oid IS NOT NULL THEN has_schema_privilege(r.oid, pair.oid, 'CREATE')
		ELSE has_database_privilege(r.oid, d.oid, 'CREATE') END
		AND NOT EXISTS (SELECT FROM pg_roles s WHERE s.rolsuper AND pg_has_role(r.oid, s.oid, 'MEMBER'))
		AND NOT pg_has_role(r.oid, pair.owner, 'MEMBER')
		AND NOT pg_has_role(r.oid, d.datdba, 'MEMBER')
		AND NOT pg_has_role(r.oid, current_user, 'MEMBER')
		AND r.rolname <> 'pg_database_owner'
	ORDER BY 1
	LIMIT 1
) stranger
ORDER BY pair.place, pair.earlier
LIMIT 1`

// uncertain finds that another role could make, or has made, a table that the name means instead of this one.
func (s *Source) uncertain(ctx context.Context, tx pgx.Tx, cat *catalog) ([]Finding, error) {
	var ahead, meant, role string
	var made, exists bool
	err := tx.QueryRow(ctx, uncertainSQL, pgx.QueryExecModeExec, splitPath(cat.path), cat.table).Scan(&ahead, &meant, &made, &exists, &role)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	who := "role " + role
	if role == "" {
		who = "every role"
	}
	first, second := qualify(ahead, cat.table), qualify(meant, cat.table)
	switch {
	case made:
		return refused(fmt.Sprintf("write source.table as %s, or as %s if it is meant", second, first),
			"table %s is %s, which %s made, and there is %s too, later in the search_path of role %s", s.config.Table, first, who, second, cat.role), nil
	case exists:
		return refused("write source.table as "+second,
			"table %s is %s, and %s may create %s, which comes first in the search_path of role %s", s.config.Table, second, who, first, cat.role), nil
	default:
		return refused("write source.table as "+second,
			"table %s is %s, and %s may make the schema of %s, which comes first in the search_path of role %s", s.config.Table, second, who, first, cat.role), nil
	}
}

// splitPath reads a search_path as the server does. The server has accepted it, so nothing in it is malformed.
func splitPath(text string) (names []string) {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		var name string
		if strings.HasPrefix(text, `"`) {
			name, text = cutQuoted(text[1:])
		} else {
			end := strings.IndexAny(text, ", \t\n\r\v\f")
			if end < 0 {
				end = len(text)
			}
			name, text = pgname.Fold(text[:end]), text[end:]
		}
		names = append(names, name)
		text = strings.TrimPrefix(strings.TrimSpace(text), ",")
	}
	return names
}

// cutQuoted returns a name whose opening quote was read, and the text after the closing one.
func cutQuoted(text string) (name, after string) {
	var b strings.Builder
	for {
		before, rest, closed := strings.Cut(text, `"`)
		b.WriteString(before)
		if !closed || !strings.HasPrefix(rest, `"`) {
			return b.String(), rest
		}
		b.WriteByte('"')
		text = rest[1:]
	}
}
