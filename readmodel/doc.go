// Package readmodel builds tables from records, in the database that holds the cursor, and puts a new version of such
// tables in the place of the old one while it is live.
//
// # Nouns
//
//   - Model: a handler for each type of record. It is a processor.TxSink: with processor.InTx, what a handler writes is
//     committed together with the advance of the cursor.
//   - Handler: what a record of one type does to the tables.
//   - Version: a process with tables of its own, such as balances@v1 and balances@v2. The new version builds its tables
//     from the beginning, while readers use the tables of the old one.
//   - Comparison: a query for what differs between the tables of two versions, at a moment when both have applied the
//     same records.
//   - Switch: one transaction that makes readers use the tables of another version, for instance by a view.
//
// # Diagram
//
//	records ──► balances@v1 ──► tables of v1 ◄── view ◄── readers
//	   │                            ▲             ┊
//	   │                         Compare          ┊ Switch
//	   │                            ▼             ▼
//	   └──────► balances@v2 ──► tables of v2 ◄┄┄┄┄┘
//
// # Invariants
//
//   - A record changes the tables once, and in order: see processor.InTx.
//   - A type that no handler knows halts the process, under any rule for poison records. The record is not at fault: the
//     program is older than its records. Nothing is passed over unless Ignore or Otherwise says so.
//   - A comparison reads both versions in one snapshot, in which their cursors have the same position.
//   - A switch never takes readers back in time: at that moment the new version has applied all that the old one has.
//   - After a switch both versions go on. So a switch back is a switch, and takes as long.
//
// # Left out
//
// Where the tables are made: a migration of yours does that. What becomes of the tables of a version that is given up:
// stop its process, forget its cursor, drop its tables.
package readmodel
