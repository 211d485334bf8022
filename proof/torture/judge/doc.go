// Package judge decides from a history alone whether the dispatcher kept its promises.
//
// Nouns: a feed is one process with everything that concerns it. An attempt is one request as the receiver saw it. A
// rank is the place of a row in its table, from 1 on. A repeat is an application that a later one of the same row
// made superfluous. A stale attempt carries an epoch below one that the receiver has seen. A segment is a stretch of
// a feed between two decisions of an operator that move the cursor; order and completeness are owed within it.
//
//	I1   every row of the table was applied and acknowledged, by every process on it, or is a dead letter of it; the rows
//	     that producers committed are in the table
//	I2   only rows of the table were applied; rows that producers rolled back are not in it
//	I3   first applications happen in the order of the table, without a hole
//	I4   a row is received only after everything before it was acknowledged, or put aside
//	I5   each repeat has a fault for its cause, and a fault causes at most `checkpoint` of them in a process; a sql sink
//	     and a stream have none
//	I6   a fencing receiver applies nothing stale, and nothing stale is in a stream; what another receiver applies of it
//	     had been applied before, or is the one row that the superseded worker had on the wire: at most `checkpoint` after
//	     the cursor as it was then, with no hole before it (I3)
//	I7   the cursor's position and epoch only grow; it moves by at most `checkpoint` rows, only past acknowledged ones or
//	     those that a stream has, and counts them, or by the one row that becomes a dead letter in the same transaction;
//	     epoch and sequence leap only at a promotion that the audit shows, and by the agreed amount
//	I8   a stale attempt has a fault for its cause: without one, two workers were at work at the same time
//	I9   contents are the producer's, signatures right; key, position and sequence of a row are the same at every attempt
//	I10  a process halts only over a record that was refused for good, and puts no other aside; while it is halted or paused
//	     nothing of it is received; an operator who stops it, sets it going or moves its cursor leaves an audit row in the
//	     same transaction, and does what that row records; a decision about one record passes over no other; status and
//	     metrics report it in time, and never otherwise; status names what holds delivery up, and names no writer while a
//	     worker delivers
//	I11  soon after the last fault every process is at the end of its table, within its connections and files
//	I12  what status and metrics report was so at some moment between the question and the answer: position, number, epoch;
//	     of status also the lag
//	I13  a worker hands over no more than its limit allows, and waits before each attempt while its breaker is open
//
// Of a database whose servers are replaced (a cell):
//
//	I14  every row of the last server was received by every process, the first time in its turn; the rows that producers
//	     committed are in the last server, or are gone with one that was replaced by a fault that loses commits; a table that
//	     is written exactly once has the rows of the last server, less those that an operator was asked to take out
//	I15  at a receiver, two records never have the same sequence number or the same dedup key of a process; in a table that
//	     is written exactly once no number comes twice
//	I16  two servers never have the same epoch, and no record came under an epoch of a server that did not have it
//	I17  after each change every process soon has delivered what is there, and runs
//
// # Invariants of its own
//
//   - Everything is O(n log n) in the length of the history.
//   - A fault explains only what it can cause. Each kind defines for how long and for which victim. Kinds that must
//     cause no repeat (SIGTERM, a stolen lock, a poison record) explain none.
//   - No verdict depends on how busy the machine was: each patience is counted in time that is worth something
//     (history.Tempo).
//   - A record that an operator sends again may be missing in a stream only if the server still knew its id.
//
// Left out: worker logs, which a killed worker does not finish. The audit of the cursor's row and the receiver see
// the same from outside.
package judge
