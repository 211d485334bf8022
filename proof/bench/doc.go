// Command bench measures the claims of the documentation about speed and memory:
//
//	go run ./proof/bench                    all rows, a few minutes
//	go run ./proof/bench -only each         one measurement
//	go run ./proof/bench -scale 0.01        a hundredth of the records and of the time
//
// It starts a PostgreSQL server of its own with fsync on, which needs 8 GB in the temporary directory. It prints a
// Markdown table to stdout, and its progress to stderr. It exits 0 whether or not the targets are met, since a busy
// machine is not a failure: a row below its target shows that.
//
// # Nouns
//
//   - Measurement: one name of -only; one or more rows of the table.
//   - Contestant: one way to do the work, the dispatcher's or a plain one over pgx, net/http or a broker's client.
//   - Round: each contestant once, in turn. A ratio is taken within a round, so that other load of the machine slows
//     both sides. The table shows the median of the rounds, with the lowest and the highest.
//   - Child: this program run again as another process: the receiver of webhooks, and the program whose peak memory
//     is measured.
//
// # Invariants
//
//   - An absolute time is not a verdict, except for the latency and the switch, which are times by nature.
//   - All contestants read the same rows of one table, whose payloads have 200 bytes as text.
//   - A sink and the bare client with which it is compared send the same messages, with as many on their way.
//   - A contestant that delivers too few records, or too many, is an error and not a result.
//
// # Left out
//
// Servers elsewhere, several processes at once, and comparisons with other tools.
package main
