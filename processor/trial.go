package processor

import (
	"crypto/rand"
	"encoding/json"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

// TestTable is the table of a Test. Each table of a source has a schema in its name, so no dedup key of a record begins
// like the one of a test.
const TestTable = "ordered-test"

// Test returns a delivery to try out the way to a receiver. It is no record: sinks mark it as a test, and its dedup key
// is never one of a record. It has the numbers that the cursor has, and is out of its turn. So it begins no epoch at
// a receiver, and is ahead of nothing.
func Test(row cursor.Row, payload json.RawMessage) Delivery {
	position := row.Position
	if position == cursor.Unplaced || position == "" {
		position = TestTable
	}
	return Delivery{
		Record: Record{
			Position: position, Table: TestTable, ID: rand.Text(), Key: TestTable, Type: TestTable,
			CreatedAt: time.Now().UTC().Truncate(time.Microsecond), Payload: payload,
		},
		Process: row.Process, Origin: row.Origin, Sequence: max(1, row.Sequence), Epoch: max(1, row.Epoch), Attempt: 1, After: position,
	}
}
