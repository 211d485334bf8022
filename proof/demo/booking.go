package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"
)

// booking is a row of the table. Its JSON is what the dispatcher sends: the row, by its columns.
type booking struct {
	ID        int64       `json:"id"`
	CreatedAt time.Time   `json:"created_at"`
	Customer  int64       `json:"customer_id"`
	Phone     string      `json:"phone"`
	Status    string      `json:"status"`
	Amount    json.Number `json:"amount"` // digits as they were inserted, 12.50 and not 12.5
}

// digest is a fingerprint of a booking's contents: equal where it was inserted, in the table and at the receiver.
type digest [sha256.Size]byte

func (b booking) digest() digest {
	return sha256.Sum256(fmt.Appendf(nil, "%d|%d|%d|%q|%q|%q",
		b.ID, b.CreatedAt.UnixMicro(), b.Customer, b.Phone, b.Status, b.Amount))
}

// before is the order of the source: created_at, then id.
func (b booking) before(other booking) int {
	if order := b.CreatedAt.Compare(other.CreatedAt); order != 0 {
		return order
	}
	return int(b.ID - other.ID)
}
