// Package draft proposes a configuration for a table, from what the catalog says of it.
//
// # Nouns
//
//   - Candidate: a table of the database that may be delivered.
//   - Table: what the catalog says of one table: its columns, keys, partitions.
//   - Proposal: which columns give the order and the identity of the records, and why.
//
// # Invariants
//
//   - It only reads the catalog, and no row of the table.
//   - The text of a proposal holds no password: the file names the variable DATABASE_URL.
//   - Names of the catalog are quoted where YAML or SQL would read more into them.
//
// # Diagram
//
//	Look ──► Table ── Propose ──► Proposal ── Text ──► dispatcher.yaml
//
// # Left out
//
// Whether the table can be read in that order: `doctor` says it, and package outbox has the DDL that makes it so.
package draft
