package spool_test

import (
	"os"
	"path/filepath"
	"testing"

	"example.com/own-sink/spool"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// What others of the machine may have put at the name of the file that is not whole yet.
func TestDeliver_FollowsNoLinkAndShowsTheFileToNoOther(t *testing.T) {
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Symlink(elsewhere, filepath.Join(dir, "00000000000000000001.part")); err != nil {
		t.Fatal(err)
	}
	opened, err := spool.Config{Dir: dir}.Open(sinks.Environment{})
	if err != nil {
		t.Fatal(err)
	}
	d := processor.Delivery{Record: processor.Record{Payload: []byte("paid")}, Sequence: 1}
	if err := opened.Each.Deliver(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(elsewhere); err == nil {
		t.Fatal("it wrote to the target of the link")
	}
	info, err := os.Lstat(filepath.Join(dir, "00000000000000000001"))
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("want a file of mode 0600, got %v, %v", info.Mode(), err)
	}
}

func TestConfig_ADirectoryBelongsToOneProcess(t *testing.T) {
	var config sinks.Config = spool.Config{Dir: "/var/spool/orders/"}
	exclusive, ok := config.(sinks.Exclusive)
	if !ok {
		t.Fatal("two processes may have one directory")
	}
	what, fix := exclusive.Owned("orders")
	if what != "directory /var/spool/orders" || fix == "" {
		t.Fatalf("got %q, %q", what, fix)
	}
}

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
