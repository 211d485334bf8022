package main

import "time"

// history is everything that the parties of one run noted.
type history struct {
	Log        []entry    // the producers' own, in any order
	Table      []booking  // what the table held at the end, in its order
	Deliveries []delivery // in the order in which they arrived
	Kills      []kill
}

// entry is a line of a producer's log: a booking it inserted, and what became of the transaction.
type entry struct {
	Booking   booking
	Committed bool      // else rolled back
	EndedAt   time.Time // right after COMMIT or ROLLBACK had returned
}

// delivery is what arrived at the receiver, once for each attempt.
type delivery struct {
	At       time.Time
	Booking  int64
	Digest   digest
	Position string
	Sequence int64
	Epoch    int64
}

// kill is the end of a worker while the receiver had its delivery and had not answered.
type kill struct {
	At     time.Time
	Worker string
	Held   delivery
}
