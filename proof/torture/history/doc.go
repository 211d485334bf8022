// Package history holds the notes of the parties of a torture: one file of JSON lines for each of them, and all of
// them in one value for the judge.
//
// Nouns: an actor is a party that notes something. An entry is one line of its file. A Run is the whole of it.
//
//	producer-*.jsonl  Write      each transaction: begun, inserted, committed, given up, unknown
//	receiver.jsonl    Delivery   each attempt: received, applied, refused, answered
//	nemesis.jsonl     Fault      each fault: begun, ended, missed
//	operator.jsonl    Action     the dispatcher's own audit: what was done to each cursor, by workers and by hand
//	cursor.jsonl      Move       each UPDATE of a cursor that was committed, noted by a trigger
//	watch.jsonl       Told       what the status command and each worker's /metrics said, again and again
//	holds.jsonl       Hold       who held a cursor's row or a table, and for how long for certain
//	letters.jsonl     Letter     the dead letters at the end
//	rows.jsonl        Row        the tables at the end, in their order: what is true
//	applied.jsonl     Applied    what the sql sinks wrote into their tables, what lay in queues and streams
//	end.jsonl         End        the state of each process when it was over
//	beats.jsonl       Beat       how long a little work took, all the while: how busy the machine was
//	run.jsonl         Setting    seed, length and processes
//	cell/*.jsonl      Cell       what the parties of a database noted whose servers are replaced
//
// Invariants:
//
//   - All times are nanoseconds on the monotonic clock since the beginning of the run, so times of different actors
//     compare. Times of the database are converted from its wall clock. Setting.Drift is how far the two clocks came
//     apart meanwhile.
//   - Reading returns what was written: a kept run can be judged again.
package history
