// Package pgname reads the name of a table or a column as SQL reads it, and refuses names that PostgreSQL would change.
//
// # Nouns
//
//   - Name: one or two parts, with a dot between them. In double quotes a part is taken literally.
//   - Part: the name of a schema, a table or a column, as the catalog has it. At most MaxBytes bytes.
//
// # Invariants
//
//   - Parse reads a name as parse_ident of the server does, or refuses it.
//   - pgx.Identifier(parts).Sanitize() is read back as the same parts.
//
// # Diagram
//
//	app."My Table" ── Parse ──► {"app", "My Table"} ── pgx.Identifier ──► "app"."My Table"
//
// # Left out
//
// Whether such an object exists, and where the search_path finds a name without a schema.
package pgname
