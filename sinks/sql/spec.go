package sql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgurl"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/plaintext"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/privilege"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// Spec registers the sink with a daemon.
func Spec() sinks.Spec {
	return sinks.Spec{Name: "sql", Page: "sql.md", New: func() sinks.Config { return &Config{} }}
}

// Validate returns all faults at once, and quotes nothing of the URL. The settings of another database need its URL.
func (c Config) Validate() error {
	if c.URL != "" {
		_, err := NewRemote(c)
		return err
	}
	if c.Schema != "" || c.Timeout != 0 || c.HideAnswers {
		return errors.New("schema, timeout and quote_answers are about another database: give its url, as in " +
			`url: "postgres://user:${PASSWORD}@host:5432/database", or remove them: without url the sink is in the database of the cursor`)
	}
	_, err := New(c)
	return err
}

// Settings names the target.
func (c Config) Settings() map[string]string {
	if c.URL == "" {
		return nil
	}
	return map[string]string{"target": c.String()}
}

// Confidential returns the statements, which may hold a secret. No statement holds a NUL byte.
func (c Config) Confidential() map[string]string {
	return map[string]string{"statement": strings.Join(c.Statements, "\x00")}
}

// DatabaseURL returns the URL of the target.
func (c Config) DatabaseURL() string { return c.URL }

// Open makes the sink. In another database the records of a checkpoint are one transaction, or several if they take
// longer than a call. The call leaves the server time to end a statement.
func (c Config) Open(sinks.Environment) (sinks.Opened, error) {
	if c.URL == "" {
		sink, err := New(c)
		return sinks.Opened{InTx: sink}, err
	}
	sink, err := NewRemote(c)
	return sinks.Opened{Pipeline: sink, Timeout: sinks.CallTimeout(c.withDefaults().Timeout)}, err
}

// Check checks the statements against their database. In another database than the cursor's, it also checks the
// rights of the role.
func (c Config) Check(ctx context.Context, process string, around sinks.Around) ([]sinks.Finding, error) {
	if c.URL == "" {
		return c.checkHere(ctx, around.Cursors)
	}
	return c.checkRemote(ctx)
}

const grantsFix = "run, as the owner, what `ordered-dispatcher grants` prints for the role"

func (c Config) checkHere(ctx context.Context, cursors *pgxpool.Pool) ([]sinks.Finding, error) {
	sink, err := New(c)
	if err != nil {
		return nil, err
	}
	err = onConn(ctx, cursors, func(ctx context.Context, conn *pgxpool.Conn) error { return sink.Check(ctx, conn.Conn()) })
	if err != nil {
		fix := "fix the sink's statement"
		if denied(err) {
			fix = grantsFix
		}
		return []sinks.Finding{{Severity: cursor.Refuse, Problem: err.Error(), Fix: fix}}, nil
	}
	return nil, nil
}

func (c Config) checkRemote(ctx context.Context) ([]sinks.Finding, error) {
	sink, err := NewRemote(c)
	if err != nil {
		return nil, err
	}
	err = sink.Check(ctx)
	switch {
	case errors.Is(err, ErrNoTables):
		fix := visible.Comment("in "+sink.String()+", as the owner of the schema:") + "\n" + sink.Tables()
		return []sinks.Finding{{Severity: cursor.Refuse, Problem: err.Error(), Fix: fix}}, nil
	case err != nil && !denied(err):
		return []sinks.Finding{{Severity: cursor.Refuse, Problem: err.Error(), Fix: "fix the sink's url or statement, or the target"}}, nil
	}
	var all []sinks.Finding
	lacking, lackingErr := sink.Lacking(ctx)
	for _, p := range lacking {
		p = p.Masked(sink.guard.Secrets.Replace)
		all = append(all, sinks.Finding{
			Severity: cursor.Refuse, Problem: sink.guard.Secrets.Replace(fmt.Sprintf("%s: role %s lacks %s on %s", sink, sink.Role(), p, p.Name)),
			Fix: visible.Comment("in "+sink.String()+":") + "\n" + privilege.Grant(sink.Role(), p),
		})
	}
	switch {
	case len(lacking) > 0:
	case err != nil:
		fix := "let the role in there, as the owner: GRANT USAGE ON SCHEMA … TO " + pgx.Identifier{sink.Role()}.Sanitize()
		all = append(all, sinks.Finding{Severity: cursor.Refuse, Problem: err.Error(), Fix: fix})
	case denied(lackingErr):
		all = append(all, sinks.Finding{Severity: cursor.Note, Problem: fmt.Sprintf("doctor could not check whether the role may run the sink's statement: %v", lackingErr)})
	default:
		return nil, lackingErr
	}
	return all, nil
}

// Needs returns the privileges that the statements need in the database of the cursor.
func (c Config) Needs(ctx context.Context, cursors *pgxpool.Pool) (needs privilege.Needs, err error) {
	if c.URL != "" {
		return needs, nil
	}
	sink, err := New(c)
	if err != nil {
		return needs, err
	}
	err = onConn(ctx, cursors, func(ctx context.Context, conn *pgxpool.Conn) error {
		needs, err = sink.Needs(ctx, conn.Conn())
		return err
	})
	return needs, err
}

// NeedsElsewhere returns the SQL for the target: its tables if they are missing, and the grants for its role. It is
// "" in the database of the cursor.
func (c Config) NeedsElsewhere(ctx context.Context) (string, error) {
	if c.URL == "" {
		return "", nil
	}
	sink, err := NewRemote(c)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Run in another database, %s, as the owner of what is named:\n", sink)
	err = sink.Check(ctx)
	if errors.Is(err, ErrNoTables) {
		b.WriteString(sink.Tables() + "\n")
		err = nil
	}
	needs, needsErr := sink.Needs(ctx)
	mask := sink.guard.Secrets.Replace // the target may name an object like the password
	for _, on := range privilege.ByObject(needs.Privileges) {
		for i := range on {
			on[i] = on[i].Masked(mask) // before the command is made: what mask cuts is no command any more
		}
		b.WriteString(privilege.Grant(sink.Role(), on...) + ";\n")
	}
	if len(needs.BlindSpots) > 0 {
		fmt.Fprintf(&b, "Not checked, so add what they need: %s.\n", mask(strings.Join(needs.BlindSpots, ", ")))
	}
	return b.String(), errors.Join(err, needsErr)
}

// Exposures finds a target to which the password and the records may go without TLS, or without a check of its
// certificate.
func (c Config) Exposures() []sinks.Finding {
	if c.URL == "" {
		return nil
	}
	const fix = "set sslmode=verify-full and sslrootcert in url"
	parsed, err := pgurl.ParseAlone(c.URL)
	if err != nil {
		return nil // Validate refuses it
	}
	if host := plaintext.Postgres(parsed); host != "" {
		return []sinks.Finding{{Severity: cursor.Warn, Fix: fix,
			Problem: fmt.Sprintf("the connection to %s may be unencrypted, so that the password and the records could be read on the way", host)}}
	}
	if host := plaintext.Unverified(parsed); host != "" {
		return []sinks.Finding{{Severity: cursor.Warn, Fix: fix,
			Problem: fmt.Sprintf("the certificate of %s is not checked, so that another could take its place and the password", host)}}
	}
	return nil
}

// Files returns the files that the connection string of the target names.
func (c Config) Files() (secret, trusted []string) {
	if c.URL == "" {
		return nil, nil
	}
	return pgurl.FilesByUse(c.URL)
}

// denied reports whether the server answered that the role lacks a right.
func denied(err error) bool { return codeOf(err) == insufficientPrivilege }

func onConn(ctx context.Context, pool *pgxpool.Pool, f func(context.Context, *pgxpool.Conn) error) error {
	return answer.OnConn(ctx, pool, answer.Wait{Connection: connectionTimeout, Answer: askTimeout}, f)
}

// connectionTimeout bounds the wait for a connection of the pool.
const connectionTimeout = 10 * time.Second

// Untestable returns why no test can go to another database: the sink commits there, with the notes of the process.
func (c Config) Untestable() string {
	if c.URL == "" {
		return ""
	}
	return "the statements would be committed in the other database, beside the notes by which records are applied once: `doctor` looks at the server and the rights"
}
