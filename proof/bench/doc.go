// Command bench measures what the documentation says of speed and memory:
//
//	go run ./proof/bench                    all rows, a few minutes
//	go run ./proof/bench -only each         one measurement
//	go run ./proof/bench -scale 0.01        a hundredth of the records and of the time
//
// It starts a PostgreSQL server of its own with fsync on, which needs 8 GB in the temporary directory, and prints a
// Markdown table to stdout; what it is doing goes to stderr. It exits 0 whether or not the targets are met, since a busy machine is not a failure: a row below its
// target says so.
//
// # Nouns
//
//   - Measurement: what -only names; one or more rows of the table.
//   - Contestant: one way to do the work, the dispatcher's or a plain one over pgx, net/http or a broker's client.
//   - Round: each contestant once, in turn. A ratio is taken within a round, so that whatever else the machine does
//     falls on both sides; the table shows the median of the rounds, with the lowest and the highest.
//   - Child: this program run again as another process: the receiver of webhooks, and whoever's peak memory is taken.
//
// # Invariants
//
//   - No absolute time is a verdict, except for the latency, which is one by nature.
//   - All contestants read the same rows of one table, whose payloads have 200 bytes as text.
//   - A sink and the bare client it is held against send the same messages, with as many on their way.
//   - A contestant that delivers too few records, or too many, is an error and no result.
//
// # Left out
//
// Servers elsewhere, several processes at once, and comparisons with other tools.
package main
