// Package sql applies each record with SQL statements, exactly once. It does so in the transaction that advances the
// cursor, or in another database together with a note of the records that were applied there.
//
// # Nouns
//
//   - Sink: the statements of one configuration, in the database of the cursor.
//   - Remote: a Sink's statements in another database, the target, over one connection.
//   - Applied: the target's row for a process: how far it has come there.
//   - Refused: the numbers of the records that failed in the target. They distinguish a record that an operator passed
//     over from one that the target has lost.
//   - Statement: one SQL command. Several are a list, and run in order.
//   - Argument: a part of the record, written @name in a statement. It is sent as a bind parameter, never as text
//     within the statement.
//
// # Diagram
//
//	[UPDATE … @id] [INSERT … @key]     New: pgx finds @name ─► $n
//	           │
//	           ▼
//	[UPDATE … $1] [INSERT … $1]        DeliverTx: all in one network flush,
//	           │                       in the processor's transaction
//	           ▼
//	   all applied ─► nil              the processor commits them with the position
//	   one failed  ─► its ordinal      the processor rolls all of them back
//
// A Remote has its own transaction, in two flushes:
//
//	DeliverBatch ──► BEGIN; lock applied ──► epoch older? ─► ErrFenced
//	                        │                number there? ─► skipped
//	                        │                nothing missing? else ErrMissing, ErrForeign
//	                        ▼
//	                 statements of each record; deferred constraints; applied; COMMIT
//	                        │ one failed
//	                        ▼
//	                 the records before it alone; then refused notes it
//
// # Arguments
//
//	@id          the row's id
//	@key         NULL when the record has none
//	@type        NULL when the record has none
//	@payload     the payload's JSON text as it is; NULL when it is empty
//	@headers     a JSON object; {} when the record has none
//	@created_at  a timestamptz; NULL when the record has none
//	@sequence    number of the record in its process: see processor.Delivery
//	@position    the cursor's position once this record is applied
//	@dedup_key   identity of the record for receivers
//	@process     name of the process
//	@epoch       fencing token
//
// All are sent as text of unknown type, and the server infers the type from the place: INSERT INTO t (n) VALUES (@id)
// takes the type of the column. Where it cannot, add a cast: @payload::jsonb->>'amount'. One name is one parameter
// within a statement, so all its uses have one type. If they need several types, cast each: @id::text,
// @id::text::bigint.
//
// # Lexical rules
//
// They are those of pgx.NamedArgs. Strings ('…', E'…', $tag$), quoted identifiers and comments (--, nested /* */) are
// left alone. Elsewhere "@" begins an argument if a letter or "_" follows it directly. So @>, <@, @@, @? and @-@ are
// operators, and "a <@b" has an argument: put a space after an operator that ends with "@". Other names than those
// above are refused.
//
// A text holds one command. It may end with ";" and comments.
//
// # Invariants
//
//   - No data of a record becomes part of a statement's text.
//
//   - A Sink neither commits nor rolls back, and leaves nothing in the session: only unnamed statements, and no
//     settings. Statements that would do so are refused. So a Sink works through PgBouncer in transaction mode. (SET
//     LOCAL is allowed; it holds for the advance of the cursor, too.)
//
//   - An error names the statement by its ordinal and wraps the *pgconn.PgError.
//
//   - A record is Permanent only if the server objects to its data: SQLSTATE class 22 (data exception), 23 (integrity
//     constraint), 44 (check option of a view) and 54 (program limit, such as a value too large for its index). A
//     function or trigger that wants to refuse a record for good raises one of them.
//
//   - A payload that is a claim check or compressed is applied only by statements that have @headers, which show that.
//     With @payload and without @headers it is Refused: as JSON, a reference has none of the fields that the statement
//     looks for.
//
//   - With Config.RequireRow a record is also Permanent if a statement touched no row for it. Without it an UPDATE that
//     finds no row counts as applied.
//
//   - Everything else is tried again. A fault of the server, the network or the statement (classes 42 and 0A) is not
//     the record's fault. It goes away without an operator touching the cursor. Check finds a wrong statement before
//     the first record does.
//
//   - A Remote applies a record only directly after the one before it: by its number, or by the cursor's position
//     before it. Otherwise it applies the record after one that failed there, or after a seek. So it notices a target
//     that was restored to an earlier state.
//
//   - A Remote writes only after it has locked the process's row, and in an epoch no older than the row's: a worker
//     that was superseded writes nothing.
//
//   - A Remote creates nothing. Remote.Tables is for the owner to run.
//
// # Left out
//
// Other kinds of databases; results of statements; commands with a ";" inside (BEGIN ATOMIC, CREATE RULE), which would
// be taken for several; an E'…' beside a string that goes on in another line, which pgx would end there; COPY;
// standard_conforming_strings = off, which Check refuses. Check does not execute, so it finds no missing grant.
package sql
