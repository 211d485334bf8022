package table

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

const importTime = time.Second

// importSQL makes procedures that commit each row of an import by itself.
const importSQL = `
CREATE PROCEDURE app.import(who text, n int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..n LOOP
		INSERT INTO app.bookings (label) VALUES (who || '-' || i);
		COMMIT;
	END LOOP;
END$$;
CREATE PROCEDURE app.import_labels(labels text[]) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..array_length(labels, 1) LOOP
		INSERT INTO app.bookings (label) VALUES (labels[i]);
		COMMIT;
	END LOOP;
END$$;
CREATE PROCEDURE app.import_chained(who text, n int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..n LOOP
		INSERT INTO app.bookings (label) VALUES (who || '-' || i);
		COMMIT AND CHAIN;
	END LOOP;
END$$;`

// many repeats a text for each of n rows, where $row stands for its label.
func many(n int, who, text string) string {
	var all strings.Builder
	for i := range n {
		all.WriteString(strings.ReplaceAll(text, "$row", fmt.Sprintf("%s-%d", who, i+1)))
	}
	return all.String()
}

// imports are the ways to commit many transactions in one message, or to prepare
// them: each of these messages is one of the simple protocol.
var imports = map[string]func(who string) []string{
	"a message": func(who string) []string {
		return []string{many(400, who, `BEGIN; INSERT INTO app.bookings (label) VALUES ('$row'); COMMIT;`)}
	},
	"a message of chained transactions": func(who string) []string {
		return []string{`BEGIN;` + many(400, who, `INSERT INTO app.bookings (label) VALUES ('$row'); COMMIT AND CHAIN;`) + `COMMIT`}
	},
	"a message of prepared transactions": func(who string) []string {
		messages := []string{many(5, who, `BEGIN; INSERT INTO app.bookings (label) VALUES ('$row'); PREPARE TRANSACTION '$row';`)}
		for i := range 5 {
			messages = append(messages, fmt.Sprintf(`COMMIT PREPARED '%s-%d'`, who, i+1))
		}
		return messages
	},
	"a procedure":             func(who string) []string { return []string{fmt.Sprintf(`CALL app.import('%s', 400)`, who)} },
	"a procedure that chains": func(who string) []string { return []string{fmt.Sprintf(`CALL app.import_chained('%s', 400)`, who)} },
	"a DO": func(who string) []string {
		return []string{fmt.Sprintf(`DO $$BEGIN FOR i IN 1..400 LOOP INSERT INTO app.bookings (label) VALUES ('%s-' || i); COMMIT; END LOOP; END$$`, who)}
	},
}

// A session that commits many transactions in one message is in none of them at
// some instants, and the next one may be stamped with the arrival of the message.
func TestRead_ImportsOfManyTransactionsInOneMessageLoseNothing(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"now()", "statement_timestamp()"} {
		for name, messages := range imports {
			t.Run(by+" "+name, func(t *testing.T) {
				t.Parallel()
				g := ground{sql: groundSQL(identity, "DEFAULT "+by, "created_at, id") + importSQL}
				pool := database(t, g.sql)
				s := bookings(t, readerPool(t, pool, "stats"), Config{Latency: time.Millisecond})
				deadline := time.Now().Add(importTime)
				done := make(chan struct{})
				var got delivered
				var reader, producers sync.WaitGroup
				reader.Go(func() { got = g.read(t, s, done) })
				prefix := pool.Config().ConnConfig.Database
				for i := range 2 {
					conn := newSession(t, pool)
					conn.do(`SET synchronous_commit = off`)
					producers.Go(func() { runImports(t, conn, deadline, fmt.Sprintf("%s %d", prefix, i), messages) })
				}
				single := newSession(t, pool)
				producers.Go(func() { insertSingly(t, single, deadline) })
				producers.Wait()
				close(done)
				require.False(t, t.Failed())
				reader.Wait()
				want := g.committed(t, pool)
				requireSame(t, want, got.labels, "what was read")
			})
		}
	}
}

// leastImports is how many a session sends on a machine that is too busy for more.
const leastImports = 10

// runImports sends one message after another, with a pause in between in which the
// fence may pass.
func runImports(t *testing.T, s *session, deadline time.Time, name string, messages func(who string) []string) {
	for i := 0; i < leastImports || time.Now().Before(deadline); i++ {
		for _, message := range messages(fmt.Sprintf("%s %d", name, i)) {
			if err := simply(t.Context(), s.PgConn(), message); err != nil {
				t.Errorf("import: %v", err)
				return
			}
		}
		<-time.After(5 * time.Millisecond)
	}
}

// simply sends a message of the simple protocol.
func simply(ctx context.Context, conn *pgconn.PgConn, sql string) error {
	_, err := conn.Exec(ctx, sql).ReadAll()
	return err
}

func insertSingly(t *testing.T, s *session, deadline time.Time) {
	for i := 0; time.Now().Before(deadline); i++ {
		if _, err := s.Exec(t.Context(), fmt.Sprintf(`INSERT INTO app.bookings (label) VALUES ('single %d')`, i)); err != nil {
			t.Errorf("insert: %v", err)
			return
		}
	}
}
