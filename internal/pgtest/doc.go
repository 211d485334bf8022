// Package pgtest gives each test real PostgreSQL databases, servers and PgBouncers of its own.
//
//	URL(t), Database(t)   the test's own database on the shared server, dropped at its end
//	Pool(t, url, …)       a further pool, closed at its end
//	Connect, Begin        a session, a transaction, ended at its end
//	Exec, Value           run SQL, or fail the test
//	Role(t, …)            a role of the test's own, dropped at its end; As and With make it the one of a URL
//	Server(t, settings)   a server of the test's own, to be stopped, restarted and promoted
//	PgBouncer(t, url)     a PgBouncer before any of them
//	Require(t, name)      the path of a program such as pgbench
//
// The shared server is the first of these that exists:
//
//	DATABASE_URL ──▶ make test sets it, by way of withpg: one server for all packages
//	pglocal      ──▶ plain "go test ./cursor/": one server for this test binary, started by the first test that asks
//
// Invariants:
//
//   - No TestMain is needed, and nothing outlives the test binary, not even after os.Exit or a kill: see package
//     throwaway, which owns what runs here.
//   - The sessions of Pool have an empty search_path unless the test asks for another, so that a forgotten schema
//     fails. URL is like a user's: its search_path is PostgreSQL's default.
//   - If CI is set, a missing program fails the test. Elsewhere the test is skipped, and says which package to
//     install.
//
// The user of DATABASE_URL must be allowed to create databases. Prepared transactions that a test leaves are rolled
// back.
package pgtest
