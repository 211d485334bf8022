package upcast_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/upcast"
)

// add returns an upcaster that adds a field.
func add(field string, value any) upcast.Func {
	return func(payload json.RawMessage) (json.RawMessage, error) {
		var all map[string]any
		if err := json.Unmarshal(payload, &all); err != nil {
			return nil, err
		}
		all[field] = value
		return json.Marshal(all)
	}
}

func chain(t *testing.T) *upcast.Upcasters {
	t.Helper()
	u, err := upcast.New(
		upcast.From("booking.created", 2, add("currency", "EUR")),
		upcast.From("booking.created", 1, add("seats", 1)),
		upcast.From("booking.paid", 4, add("paid", true)))
	require.NoError(t, err)
	return u
}

func TestPrepare_EveryVersionLeavesAsTheCurrentOne(t *testing.T) {
	t.Parallel()
	for typ, want := range map[string][2]string{
		"booking.created":   {"booking.created@3", `{"currency":"EUR","seats":1}`},
		"booking.created@1": {"booking.created@3", `{"currency":"EUR","seats":1}`},
		"booking.created@2": {"booking.created@3", `{"currency":"EUR"}`},
		"booking.created@3": {"booking.created@3", `{}`},
		"booking.paid@4":    {"booking.paid@5", `{"paid":true}`},
		"other":             {"other", `{}`},
		"other@7":           {"other@7", `{}`},
		"":                  {"", `{}`},
	} {
		given := processor.Record{ID: "1", Type: typ, Payload: []byte("{}")}
		made, err := chain(t).Prepare(t.Context(), given)
		require.NoError(t, err, typ)
		require.Equal(t, want, [2]string{made.Type, string(made.Payload)}, typ)
		require.Equal(t, "{}", string(given.Payload), "the row stays as it is")
	}
}

func TestPrepare_AFailureNamesTypeAndVersionAndNoData(t *testing.T) {
	t.Parallel()
	failing, err := upcast.New(
		upcast.From("a", 1, func(payload json.RawMessage) (json.RawMessage, error) {
			return nil, fmt.Errorf("cannot read the name Smith4711 in %s", payload)
		}),
		upcast.From("b", 1, func(json.RawMessage) (json.RawMessage, error) { return []byte("Smith4711"), nil }),
		upcast.From("c", 3, add("x", 1)))
	require.NoError(t, err)
	for _, c := range []struct {
		record processor.Record
		want   string
	}{
		{processor.Record{Type: "a"}, "upcast a@1: the upcaster failed: cannot read the name […]"},
		{processor.Record{Type: "b@1"}, "upcast b@1: the upcaster returned something that is not JSON"},
		{processor.Record{Type: "c@2"}, "upcast c@2: there is no upcaster from this version: the oldest is from version 3"},
		{processor.Record{Type: "c@5"}, "upcast c@5: the current version is 4: this program is older than the producer of the record"},
		{processor.Record{Type: "c@99999999999999999999"}, "the current version is 4"},
		{processor.Record{Type: "c@3", Payload: []byte("Smith4711")}, "upcast c@3: its payload is not JSON"},
		{processor.Record{Type: "c@3", Headers: map[string]string{"claim-check": "x"}}, "upcast c@3: its payload is a claim check, which this process passes on: resolve it first, with the key `claims`, or in Go with payload.Resolve"},
		{processor.Record{Type: "c@3", Headers: map[string]string{"content-encoding": "zstd"}}, "upcast c@3: its payload is compressed, which this process passes on: decompress it first, with the key `compressed`, or in Go with payload.Decompress"},
	} {
		if c.record.Payload == nil {
			c.record.Payload = []byte(`{"name": "Smith4711"}`)
		}
		_, err := failing.Prepare(t.Context(), c.record)
		require.ErrorContains(t, err, c.want)
		require.True(t, processor.IsPermanent(err))
		require.NotContains(t, err.Error(), "Smith")
	}
}

func TestNew_RefusesAChainThatIsNotOne(t *testing.T) {
	t.Parallel()
	same := func(payload json.RawMessage) (json.RawMessage, error) { return payload, nil }
	for want, all := range map[string][]upcast.Upcaster{
		`upcast: "a" has a gap: there is no upcaster from version 2, and one from version 3`: {upcast.From("a", 3, same), upcast.From("a", 1, same)},
		`upcast: "a" has two upcasters from version 1: keep one`:                             {upcast.From("a", 1, same), upcast.From("a", 1, same)},
		`upcast: "a" from version 0: versions begin with 1`:                                  {upcast.From("a", 0, same)},
		`upcast: an upcaster needs a type and a function`:                                    {upcast.From("a", 1, nil)},
	} {
		_, err := upcast.New(all...)
		require.EqualError(t, err, want)
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	for typ, want := range map[string]struct {
		name    string
		version int
	}{
		"a": {"a", 1}, "a@1": {"a", 1}, "a@12": {"a", 12}, "a@b@3": {"a@b", 3},
		"a@": {"a@", 1}, "a@0": {"a@0", 1}, "a@01": {"a@01", 1}, "a@-1": {"a@-1", 1}, "a@x": {"a@x", 1}, "@2": {"@2", 1},
		"a@99999999999999999999": {"a", math.MaxInt},
	} {
		name, version := upcast.Split(typ)
		require.Equal(t, want.name, name, typ)
		require.Equal(t, want.version, version, typ)
	}
}

func ExampleNew() {
	upcasters, err := upcast.New(
		upcast.From("booking.created", 1, func(payload json.RawMessage) (json.RawMessage, error) {
			var old struct{ Count int }
			if json.Unmarshal(payload, &old) != nil {
				return nil, errors.New("it is no booking")
			}
			return json.Marshal(map[string]int{"seats": old.Count})
		}))
	if err != nil {
		panic(err)
	}
	config := processor.Config{Prepare: upcasters.Prepare}
	current, err := config.Prepare(context.Background(), processor.Record{Type: "booking.created@1", Payload: []byte(`{"count": 2}`)})
	fmt.Println(current.Type, string(current.Payload), err)
	// Output: booking.created@2 {"seats":2} <nil>
}
