// Package pglocal starts real PostgreSQL servers that are thrown away afterwards, for the demo and for tests.
//
// Nouns: an installation is a directory of PostgreSQL programs, found on this machine or fetched. A Server is a
// cluster that was initialised from one. Clients reach it by TCP on 127.0.0.1 until Stop.
//
//	Config ──▶ installation ──▶ throwaway.Dir ──▶ initdb ──▶ postgres ──▶ Server.URL
//	            │ 1. machine: PATH, /usr/lib/postgresql/*/bin, Homebrew, …; the highest version
//	            └ 2. fetched once by proof/fetchpg, which uses embedded-postgres, then cached
//
// Invariants:
//
//   - Both kinds of installation take the same path from initdb on.
//   - The server listens only on 127.0.0.1, on a port of its own, and asks for a random password. It has no Unix
//     socket, so a long temporary directory cannot break it.
//   - Stop leaves nothing behind. Neither does an owner that exits or is killed without calling it: see package
//     throwaway. As root the server runs as the user postgres, else nobody.
//   - fsync stays on, so that StopImmediate and Restart show a real crash recovery.
//   - A cache directory of fetched programs is complete or absent, even if many processes fetch at once.
//
// The environment:
//
//	PGLOCAL_VERSION=16   the major version where Config.Version is empty (14 to 18 can be fetched)
//	PGLOCAL_EMBEDDED=1   passes over the PostgreSQL of this machine and uses a fetched one
//
// Fetched programs are kept in the user's cache directory (as root: /var/cache), under ordered-dispatcher. They are
// initdb, pg_ctl and postgres without psql, pgbench or pg_basebackup. The fetching library leaves one small log file
// (embedded_postgres_log*) in the temporary directory per fetch.
//
// Left out: servers that keep their data, TLS, and PostgreSQL before 14.
package pglocal
