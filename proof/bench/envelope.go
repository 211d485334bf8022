package main

import (
	"strconv"
	"time"
)

// envelope is what a sink says of a record beside its payload. A bare client that
// sends the same messages says as much.
type envelope struct {
	key, process, sequence, epoch, attempt, position, created string
}

// envelopeOf makes one for the record with that number, of the usual lengths.
func envelopeOf(n int) envelope {
	number, now := strconv.Itoa(n), time.Now().UTC()
	created := now.Format(time.RFC3339Nano)
	return envelope{
		key:      schema + "." + recordsTable + "/" + number + "/" + strconv.FormatInt(now.UnixMicro(), 10),
		process:  "bench-1",
		sequence: number,
		epoch:    "1",
		attempt:  "1",
		position: created + "," + number,
		created:  created,
	}
}
