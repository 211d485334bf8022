// Package outbox is the producer's half: it writes records in the transaction that changes the business data. Either
// both are committed or neither, and the dispatcher sends what is committed.
//
// # Nouns
//
//   - Outbox: a table of records, with the columns of Outbox.SQL. Nothing is ever updated in it.
//   - Record: one row: a type, the aggregate that it is about, a payload, and headers.
//   - Aggregate: the business object that the record is about, by its type and its id.
//   - Partition: the part of an outbox for one day of UTC, if Config.Partitioned. It has to be there before the day.
//
// # Invariants
//
//   - Add is one statement in the caller's transaction. It commits nothing, and rolls nothing back.
//   - A large payload is durable in its store (Config.Claims) before its row is inserted. A rollback leaves it there, until
//     Collect removes it.
//   - A record that is refused is refused before anything is sent to the server, so the transaction can go on, if the
//     producer can do without the record. The error names the record and the field. So texts that PostgreSQL cannot hold
//     never end a transaction. A store that is away refuses no record: that is another error.
//   - Add writes all of its records, or returns an error.
//   - A source whose max_record_bytes is at least Config.MaxBytes reads each record that Add took.
//   - The records of one Add are ordered as they are given. Between transactions, the time of the insert decides. So
//     Add comes after the statement that locks the business row: see docs/producers.md.
//   - Create changes no table that is there, and Follow changes nothing at all. MakePartitions holds up no producer.
//   - The payload arrives as JSON with the same meaning. jsonb removes white space and orders keys. An outbox of raw
//     bytes (Config.Raw) keeps each byte of a []byte and of a json.RawMessage.
//
// # Diagram
//
//	business data ─┐
//	               ├─ one transaction ──► COMMIT ──► dispatcher (source: {table: …, preset: outbox}) ──► sink
//	Record ── Add ─┘
//
// # Left out
//
// Reading the outbox: see package sources/table. Deleting what was delivered: see package retention.
package outbox
