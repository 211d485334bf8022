package daemon

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/answer"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/quantity"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// Severity is how bad a Finding is.
type Severity = cursor.Severity

// The severities, worst first.
const (
	Refuse = cursor.Refuse
	Warn   = cursor.Warn
	Note   = cursor.Note
)

// Finding is one disagreement between the file and the database.
type Finding operator.Finding

// Doctor compares the file with the database and changes nothing there. Where a rule writes archive files, it writes one
// and removes it. It returns its findings: first those about the
// database, then those about each process. It returns an error if the configuration cannot be used.
func Doctor(ctx context.Context, c Config) ([]Finding, error) {
	return examine(ctx, c, checkTimeout)
}

// checkTimeout is how long a check waits for its database.
const checkTimeout = 15 * time.Second

func examine(ctx context.Context, c Config, patience time.Duration) ([]Finding, error) {
	pool, store, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	defer c.stores.close()
	d := &doctor{config: c, secrets: c.Secrets(), patience: patience, pool: pool, store: store}
	if !d.connects(ctx) {
		return d.findings, nil
	}
	for _, check := range []func(context.Context) error{d.cursorTables, d.pooler, d.connections} {
		d.check(ctx, "", check)
	}
	d.transport()
	rows := d.cursors(ctx)
	for _, p := range c.Processes {
		d.check(ctx, p.Name, func(ctx context.Context) error { return d.process(ctx, p, rows) })
		d.claims(ctx, p)
	}
	d.check(ctx, "", d.rules)
	d.check(ctx, "", d.closed)
	d.archives(ctx)
	d.targets(ctx)
	return d.findings, nil
}

// doctor collects findings.
type doctor struct {
	config    Config
	patience  time.Duration // for one check
	pool      *pgxpool.Pool
	store     *cursor.Store
	secrets   secret.Set
	findings  []Finding
	long      holders
	pooled    bool // a pooler is between us and the server
	tableless bool // the cursor tables do not exist, or this role cannot use them
}

func (d *doctor) find(process string, severity Severity, fix, problem string, args ...any) {
	d.findings = append(d.findings, Finding{process, severity, d.secrets.Replace(fmt.Sprintf(problem, args...)), visible.SQL(fix)})
}

// check makes one check, and reports whether it could be made.
func (d *doctor) check(ctx context.Context, process string, check func(context.Context) error) bool {
	err := answer.Within(ctx, d.patience, check)
	if err != nil {
		d.failed(ctx, process, err)
	}
	return err == nil
}

// failed notes a check that could not be made.
func (d *doctor) failed(ctx context.Context, process string, err error) {
	if errors.Is(err, context.DeadlineExceeded) || waitedForLock(err) {
		d.locked(ctx, process, err)
		return
	}
	d.find(process, Refuse, "see the server's message, then run doctor again", "%v", err)
}

// connects is the check that all others need.
func (d *doctor) connects(ctx context.Context) bool {
	err := onConn(ctx, d.pool, func(ctx context.Context, conn *pgxpool.Conn) error { return conn.Ping(ctx) })
	if err != nil {
		d.find("", Refuse, connectFix(err), "cannot connect: %v", err)
		return false
	}
	return true
}

// connectFix is the next step after a connection that failed.
func connectFix(err error) string {
	var pgErr *pgconn.PgError
	code := ""
	if errors.As(err, &pgErr) {
		code = pgErr.Code
	}
	var (
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		network   *net.OpError
	)
	switch {
	case errors.As(err, &authority):
		return "name the authority of the server's certificate in sslrootcert of the connection string"
	case errors.As(err, &name):
		return "let host in the connection string be a name that the server's certificate has"
	case errors.As(err, &invalid):
		return "replace the server's certificate"
	case errors.As(err, &network) && network.Op == "remote error": // an alert of TLS
		return "if it is about our certificate, name one that the server knows in sslcert and sslkey of the connection string"
	case strings.HasPrefix(code, "28"):
		return "correct user and password in the connection string, or let the user in (pg_hba.conf)"
	case code == "3D000":
		return "correct the database in the connection string, or create it"
	case code == "42501":
		return "let the role in, as the owner of the database: GRANT CONNECT ON DATABASE …, as `ordered-dispatcher grants` prints it"
	case strings.HasPrefix(code, "53"):
		return "free connections, or raise max_connections or the role's CONNECTION LIMIT"
	case errors.Is(err, answer.ErrNone), pgconn.Timeout(err): // a pooler takes the connection, and makes the client wait
		return "start the server, or correct host and port in the connection string, or give a pooler in between more connections, if all that it has are in use"
	default:
		return "start the server, or correct host and port in the connection string"
	}
}

// Verdict returns ErrFindings with the number of findings and the next step; nil if there are only notes.
func Verdict(findings []Finding) error { return VerdictOf("doctor", findings) }

// VerdictOf is Verdict for another command that prints findings.
func VerdictOf(command string, findings []Finding) error {
	if !Wrong(findings) {
		return nil
	}
	counts := map[Severity]int{}
	for _, f := range findings {
		counts[f.Severity]++
	}
	var counted []string
	if n := counts[Refuse]; n > 0 {
		counted = append(counted, amount(n, "error"))
	}
	if n := counts[Warn]; n > 0 {
		counted = append(counted, amount(n, "warning"))
	}
	return fmt.Errorf("%s %w: %s. Do what follows each `fix:`, and run %[1]s again", command, ErrFindings, strings.Join(counted, ", "))
}

// amount is a number of things, in words for people.
func amount(n int, thing string) string { return quantity.Of(n, thing) }

// Wrong reports whether findings hold more than notes.
func Wrong(findings []Finding) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity != Note })
}
