package cursor

import (
	"context"

	"github.com/jackc/pgx/v5/pgconn"
)

// keepersSQL finds objects that are not of the migrations and can keep an UPDATE from a row of the cursor
// table, or undo it.
const keepersSQL = `/* cursor.keepers */
SELECT 'trigger ' || quote_ident(t.tgname)
FROM pg_trigger t
JOIN pg_proc f ON f.oid = t.tgfoid
WHERE t.tgrelid = '{schema}.cursor'::regclass
	AND NOT t.tgisinternal
	AND t.tgenabled <> 'D'
	AND t.tgtype & 16 = 16 -- UPDATE
	AND NOT (f.proname = ANY ('{cursor_set_updated_at,cursor_keep_past,cursor_continue}'::name[]) AND f.pronamespace = '{schema}'::regnamespace)
UNION ALL
SELECT 'rule ' || quote_ident(rulename) FROM pg_rewrite WHERE ev_class = '{schema}.cursor'::regclass
UNION ALL
SELECT 'policy ' || quote_ident(polname) FROM pg_policy WHERE polrelid = '{schema}.cursor'::regclass
ORDER BY 1
LIMIT 20`

// Keepers names the triggers that run at a change of the cursor table, and its rules and policies, unless they
// are of the migrations. One of them may make an advance change no row (ErrUnmoved), or undo it (ErrUndone).
func (s *Store) Keepers(ctx context.Context) ([]string, error) {
	results, err := s.ask(ctx, s.db.Statement(keepersSQL))
	if err != nil {
		return nil, s.db.WithFix("look what is at the cursor table", err)
	}
	return texts(results[0]), nil
}

// texts are the values of a column.
func texts(result *pgconn.Result) (all []string) {
	for _, row := range result.Rows {
		all = append(all, string(row[0]))
	}
	return all
}
