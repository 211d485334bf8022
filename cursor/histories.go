package cursor

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Histories are the places after which ids may have come again. A promoted standby may have lost the last
// commits, and a restored database has lost the commits after its backup. Rows that are inserted then get ids
// that receivers have seen for other rows. So a new history begins at the cursor's position. SeekAnew begins
// one, too, where the ids of a table have started again. The dedup key of a record without a time of creation
// contains the mark of its history.
//
// It is a JSON array as the row has it, sorted by position: [{"after": "…", "mark": "1f0c77a2"}]. "" is none.
type Histories string

// history begins after a position.
type history struct {
	After Position `json:"after"`
	Mark  string   `json:"mark"`
}

// histories are Histories after parsing.
type histories []history

func (h Histories) parse() (histories, error) {
	var all histories
	if h == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(h), &all); err != nil {
		return nil, fmt.Errorf("parse the histories of the cursor: %w", err)
	}
	return all, nil
}

// at returns the mark of the history that a position belongs to; "" in the first one.
func (all histories) at(p Position) string {
	for i := len(all) - 1; i >= 0; i-- {
		if p > all[i].After {
			return all[i].Mark
		}
	}
	return ""
}

// At returns the mark of the history that a position belongs to, for Delivery.History of package processor; "" in the
// first one.
func (h Histories) At(p Position) (string, error) {
	all, err := h.parse()
	return all.at(p), err
}

// Begin returns the histories with a new one after a position. The new one replaces those that began further
// on: their records are gone, or come again in this one.
func (h Histories) Begin(after Position) (Histories, error) {
	all, err := h.parse()
	if err != nil {
		return "", err
	}
	kept := histories{}
	for _, one := range all {
		if one.After < after {
			kept = append(kept, one)
		}
	}
	var mark [4]byte
	_, _ = rand.Read(mark[:]) // never fails: see crypto/rand
	text, err := json.Marshal(append(kept, history{After: after, Mark: hex.EncodeToString(mark[:])}))
	return Histories(text), err
}
