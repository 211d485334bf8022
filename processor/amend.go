package processor

import (
	"encoding/json"
	"maps"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/packed"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// amended is what a worker knows of amended records under one epoch: from is where it looked from, and next is the
// first of them from there on. Operators amend in an epoch of its own, so it holds until the epoch changes.
type amended struct {
	epoch cursor.Epoch
	from  cursor.Position
	next  cursor.Position // "": there is none
}

// knows reports whether it says of a position whether the record there may be amended.
func (a amended) knows(epoch cursor.Epoch, at cursor.Position) bool {
	return a.epoch == epoch && at >= a.from && (a.next == "" || at <= a.next)
}

// Amend returns the record with a payload that an operator gave to it (operator.Operator.Amend), as the source
// would have read it: the payload is whole, and Config.Prepare comes after it.
func (r Record) Amend(payload json.RawMessage) Record {
	r = r.Row()
	if packed.Fault(r.Headers) != nil {
		headers := maps.Clone(r.Headers)
		delete(headers, packed.Claim)
		delete(headers, packed.Encoding)
		r.Headers = headers
	}
	r.Payload, r.Amended = payload, true
	return r
}

// amend gives the first of the records the payload that an operator gave to it, if there is one. It comes before the
// record is prepared, and so before it is sent. TestAmend_IsDeliveredInsteadOfTheRow
func (s *shift) amend(records []Record) error {
	r := &records[0]
	if r.Amended || r.Row().Fault != nil {
		return nil
	}
	known := &s.progress.amended
	if !known.knows(s.lease.Epoch(), r.Position) {
		next, err := s.lease.NextAmended(s.calls, r.Position)
		if err != nil {
			return err
		}
		*known = amended{epoch: s.lease.Epoch(), from: r.Position, next: next}
	}
	if r.Position != known.next {
		return nil
	}
	key := s.deliveries(records[:1])[0].DedupKey()
	payload, found, err := s.lease.Amended(s.calls, r.Position, key)
	if err != nil || !found { // another record, where ids have started again
		return err
	}
	*r = r.Amend(payload)
	s.log.Info("an operator has amended this record: see `ordered-dispatcher history`", "position", visible.Cut(string(r.Position)), "record_id", visible.Cut(r.ID))
	return nil
}

// unamended is how many of n records go before the next one that may be amended. That one is the first of a chunk.
func (a amended) unamended(records []Record, n int) int {
	for i := 1; i < n; i++ {
		if a.next != "" && records[i].Position >= a.next {
			return i
		}
	}
	return n
}

// letterHeaders are the headers of a record as its dead letter has them. None that a row has can pose as ours.
func (r Record) letterHeaders() map[string]string {
	_, posing := r.Headers[cursor.HeaderAmended]
	if !r.Amended && !posing {
		return r.Headers
	}
	headers := map[string]string{}
	maps.Copy(headers, r.Headers)
	delete(headers, cursor.HeaderAmended)
	if r.Amended {
		headers[cursor.HeaderAmended] = "true"
	}
	return headers
}

// OfLetter returns the record of a dead letter, as the source had read it, or with the payload that an operator had
// given to it.
func OfLetter(l cursor.DeadLetter) Record {
	r := Record{
		Position: l.Position, Table: l.Table, ID: l.RecordID, Key: l.Key, Type: l.Type,
		CreatedAt: l.CreatedAt.UTC(), Headers: l.Headers, Payload: l.Payload, Amended: l.Amended(),
	}
	if r.Amended {
		r.Headers = maps.Clone(l.Headers)
		delete(r.Headers, cursor.HeaderAmended)
	}
	return r
}
