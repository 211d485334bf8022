package table

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
)

// row is a row as the server printed it. Its bytes are valid only until the next row.
type row struct {
	at       int64 // microseconds since 1970, if finite
	finite   bool
	id       []byte
	number   int64 // the id, in order ID
	key, typ string
	headers  []byte
	payload  []byte
	taken    bool  // by Config.Where
	weight   int64 // of the record, fetched or not
}

// size is how much of a row counts against a bound: the part that the record keeps.
func (r *row) size() int {
	return len(r.id) + len(r.key) + len(r.typ) + len(r.headers) + len(r.payload)
}

// epoch2000 is where the binary form of a time counts from, in microseconds since 1970. The largest and the smallest
// number are infinity.
const epoch2000 = 946_684_800_000_000

func (l *layout) row(result *row, values [][]byte, columns *[fieldCount]int) (err error) {
	value := func(f field) []byte {
		if columns[f] < 0 {
			return nil
		}
		return values[columns[f]]
	}
	*result = row{
		id:      value(fieldID),
		key:     string(value(fieldKey)),
		typ:     string(value(fieldType)),
		headers: value(fieldHeaders),
		payload: value(fieldPayload),
		taken:   columns[fieldTaken] < 0 || value(fieldTaken) != nil,
	}
	if at := value(fieldAt); at != nil {
		if len(at) != 8 {
			return fmt.Errorf("parse created_at: %d bytes", len(at))
		}
		since2000 := int64(binary.BigEndian.Uint64(at))
		result.finite = since2000 != math.MinInt64 && since2000 != math.MaxInt64
		result.at = math.MaxInt64 // this includes the last 29 years that the server knows
		switch {
		case !result.finite:
			result.at = math.MinInt64
		case since2000 < math.MaxInt64-epoch2000:
			result.at = since2000 + epoch2000
		}
	}
	result.weight = int64(result.size())
	if size := value(fieldSize); size != nil {
		if result.weight, err = strconv.ParseInt(string(size), 10, 64); err != nil {
			return fmt.Errorf("parse the size of a record: %w", err)
		}
	}
	if !l.ordersByTime() {
		if result.number, err = strconv.ParseInt(string(result.id), 10, 64); err != nil {
			return fmt.Errorf("parse id: %w", err)
		}
	}
	return nil
}

// below reports whether no row can still appear before the row.
func (l *layout) below(row *row, bound, slack int64) bool {
	if bound == unbounded {
		return false
	}
	if !l.ordersByTime() {
		return row.number <= bound
	}
	return row.at < bound-slack
}
