package nats_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

var proposed = regexp.MustCompile(`--subjects='([^']*)'`)

// TestDeliverBatch_TheProposedSubjectsTakeTheRecordsToCome: the command named the subject of one record alone, so the next record failed in
// the same way.
func TestDeliverBatch_TheProposedSubjectsTakeTheRecordsToCome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		has     string
		declare []string
		subject string
		want    string
		one     bool // the proposed subjects take this record alone
	}{
		"declared":                    {"", []string{"s.>"}, "s.{{.ID}}", fence + ",s.>", false},
		"several are declared":        {"a.>,s.9", []string{"a.>", "b.*", "s.*"}, "s.{{.ID}}", "a.>," + fence + ",b.*,s.*", false},
		"declared, and another one":   {"", []string{"x.>"}, "s.{{.ID}}", fence + ",s.*", false},
		"made of a part of a token":   {"", nil, "s.no-{{.ID}}.{{.Type}}.end", fence + ",s.*.*.end", false},
		"one is there already":        {"s.9", nil, "s.{{.ID}}", fence + ",s.*", false},
		"it would overlap":            {"s.9.>", nil, "s.{{.ID}}.{{.Type}}", "s.9.>," + fence + ",s.1.made", true},
		"branches":                    {"", nil, `s.{{if eq .ID "1"}}one{{else}}many{{end}}`, fence + ",s.one", true},
		"all of it is of the record":  {"", nil, "{{.ID}}", fence + ",1", true},
		"values that are more tokens": {"", nil, "s.{{tokens .DedupKey}}", fence + ",s.app.bookings%2F1%2F1700000000000001", true},
		"fixed":                       {"", nil, "s", fence + ",s", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, func(s *jetstream.StreamConfig) {
				s.Subjects = []string{fence}
				if c.has != "" {
					s.Subjects = append(strings.Split(c.has, ","), fence)
				}
			})
			s := b.sink(t, func(config *nats.Config) {
				config.Subject = c.subject
				if c.declare != nil {
					config.Declare = &nats.Declare{Subjects: c.declare}
				}
			})
			ds := sinktest.Deliveries(1, 2)
			_, err := sinktest.Deliver(t, s, ds)
			found := proposed.FindStringSubmatch(err.Error())
			require.Len(t, found, 2, "%v", err)
			require.Equal(t, c.want, found[1])
			require.Equal(t, c.one, strings.Contains(err.Error(), "; other records may have other subjects: add a pattern that takes them all"), "%v", err)
			b.edit(t, func(s *jetstream.StreamConfig) { s.Subjects = strings.Split(found[1], ",") })
			if c.one {
				ds = ds[:1]
			}
			sinktest.Delivered(t, s, ds)
		})
	}
}
