package processor_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// A record has as much in its headers, its key or its id as in its payload.
func TestRedact_BesideALargeRecordNothingIsQuoted(t *testing.T) {
	t.Parallel()
	const bound = 4 << 20
	long := strings.Repeat("a ", bound/2)
	for name, record := range map[string]processor.Record{
		"payload":  {Payload: []byte(long + "x")},
		"header":   {Headers: map[string]string{"h": long + "x"}},
		"key":      {Key: long + "x"},
		"id":       {ID: long + "x"},
		"together": {Payload: []byte(long[:bound/2]), Headers: map[string]string{"h": long[:bound/4], "i": long[:bound/4]}, Key: "x"},
	} {
		require.Equal(t, "[…]", record.Redact("anything"), name)
	}
	require.Equal(t, "anything", processor.Record{Headers: map[string]string{"h": long}}.Redact("anything"))
}

// To compare many words takes no more memory than a record has.
func TestRedact_WordsTakeNoMemory(t *testing.T) {
	record := processor.Record{Key: strings.Repeat("a ", 2<<20)}
	result := testing.Benchmark(func(b *testing.B) {
		for range b.N {
			record.Redact("anything")
		}
	})
	require.Less(t, result.AllocedBytesPerOp(), int64(32<<20))
}

// A panic may speak of any record of its batch, and all of them are compared.
func TestRedact_APanicBesideManyLargeRecordsSaysNothing(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2} {
		ds := make([]processor.Delivery, n)
		for i := range ds {
			ds[i].Payload = []byte(strings.Repeat("a ", 1<<20+1))
		}
		err := processor.PanicOf(ds, "no such seat")
		require.Equal(t, n == 1, strings.Contains(err.Error(), "no such seat"), err.Error())
	}
}

func TestRedact_RemovesTheDataOfEachRecordOfACall(t *testing.T) {
	t.Parallel()
	ds := make([]processor.Delivery, 2)
	ds[0].ID, ds[0].Payload, ds[0].Headers = "7", []byte(`{"card":"4111"}`), map[string]string{"mail": "ada@example.org"}
	ds[1].ID, ds[1].Payload, ds[1].Key = "8", []byte(`{"seat":7}`), "lovelace"
	require.Equal(t, "no […] for […], seat […] in row 8", processor.Redact(ds)("no lovelace for 4111, seat 7, ada@example.org in row 8"))
	require.Equal(t, "no seat", processor.Redact(nil)("no seat"))
}
