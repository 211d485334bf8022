package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/quantity"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

// Has describes what a process has delivered.
func (r Reader) Has() string {
	switch {
	case r.Problem != "":
		return "cannot be checked: " + r.Problem
	case r.idle:
		return "needs no record that is there, since it starts at the end"
	case r.First == nil:
		return "every committed record is delivered"
	case r.First.CreatedAt.IsZero():
		return fmt.Sprintf("every record before %s is delivered", visible.Short(r.First.ID))
	default:
		return fmt.Sprintf("every record before %s of %s is delivered", visible.Short(r.First.ID), r.First.CreatedAt.Format(time.RFC3339Nano))
	}
}

// Why explains why a partition is not safe.
func (p Part) Why() string {
	var why []string
	for _, u := range p.Undelivered {
		why = append(why, fmt.Sprintf("%s has not delivered %s of it", u.Process, countOf(u.Records)))
	}
	for _, w := range p.Writers {
		why = append(why, describe(w)+" writes to it")
	}
	if len(why) > 0 && p.Detaching {
		why = append(why, "it is being detached, so no process reads it any more")
	}
	return strings.Join(append(why, p.Problems...), "; ")
}

// countOf writes a count of table.Source.Undelivered for people.
func countOf(records int64) string {
	if records >= table.MaxUndelivered {
		return fmt.Sprintf("%d records or more", records)
	}
	return quantity.Of(records, "record")
}

// retentionJSON is one table in JSON. Fields may be added, never changed.
type retentionJSON struct {
	Table      string       `json:"table"`
	Processes  []readerJSON `json:"processes"`
	Partitions []partJSON   `json:"partitions"`
	Unknown    []string     `json:"unknown_processes"`
}

type readerJSON struct {
	Process string     `json:"process"`
	State   string     `json:"state"`
	First   *firstJSON `json:"first_undelivered"`
	Problem string     `json:"problem"`
}

type firstJSON struct {
	RecordID  string     `json:"record_id"`
	CreatedAt *time.Time `json:"created_at"`
	Position  string     `json:"position"`
}

type partJSON struct {
	Partition   string            `json:"partition"`
	Safe        bool              `json:"safe"`
	Detaching   bool              `json:"detaching"`
	Undelivered []undeliveredJSON `json:"undelivered"`
	Writers     []writerJSON      `json:"writers"`
	Problems    []string          `json:"problems"`
}

type undeliveredJSON struct {
	Process string `json:"process"`
	Records int64  `json:"records,string"`
	Capped  bool   `json:"capped"`
}

// PrintPartitionsJSON writes one line: {"tables": […]}.
func PrintPartitionsJSON(w io.Writer, all []Retention) error {
	document := struct {
		Tables []retentionJSON `json:"tables"`
	}{Tables: []retentionJSON{}}
	for _, t := range all {
		document.Tables = append(document.Tables, t.json())
	}
	return json.NewEncoder(visible.JSON(w)).Encode(document)
}

func (t Retention) json() retentionJSON {
	j := retentionJSON{Table: t.Table, Processes: []readerJSON{}, Partitions: []partJSON{}, Unknown: append([]string{}, t.Unknown...)}
	for _, r := range t.Readers {
		j.Processes = append(j.Processes, readerJSON{r.Process, r.State, firstOf(r.First), r.Problem})
	}
	for _, p := range t.Partitions {
		part := partJSON{p.Name(), p.Safe(), p.Detaching, []undeliveredJSON{}, []writerJSON{}, append([]string{}, p.Problems...)}
		for _, u := range p.Undelivered {
			part.Undelivered = append(part.Undelivered, undeliveredJSON{u.Process, u.Records, u.Records >= table.MaxUndelivered})
		}
		for _, w := range p.Writers {
			part.Writers = append(part.Writers, jsonOf(w))
		}
		j.Partitions = append(j.Partitions, part)
	}
	return j
}

func firstOf(r *processor.Record) *firstJSON {
	if r == nil {
		return nil
	}
	return &firstJSON{r.ID, known(r.CreatedAt), string(r.Position)}
}
