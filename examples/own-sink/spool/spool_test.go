package spool_test

import (
	"os"
	"path/filepath"
	"testing"

	"example.com/own-sink/spool"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

func TestDeliver_ARecordThatComesAgainReplacesItsFile(t *testing.T) {
	dir := t.TempDir()
	opened, err := spool.Config{Dir: dir}.Open(sinks.Environment{})
	if err != nil {
		t.Fatal(err)
	}
	for _, sequence := range []int64{1, 2, 2} {
		d := processor.Delivery{Record: processor.Record{Payload: []byte("paid")}, Sequence: sequence}
		if err := opened.Each.Deliver(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("want two files, got %v, %v", files, err)
	}
	if text, err := os.ReadFile(files[1]); string(text) != "paid" {
		t.Fatalf("got %q, %v", text, err)
	}
}
