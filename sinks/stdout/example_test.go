package stdout_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/stdout"
)

func Example() {
	sink, err := stdout.New(stdout.Config{Writer: os.Stdout})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = sink.Deliver(context.Background(), processor.Delivery{
		Record: processor.Record{
			Position:  "c:1/42",
			Table:     "public.bookings",
			ID:        "42",
			CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			Payload:   []byte(`{"seats": 2}`),
		},
		Process: "sms", Sequence: 7, Epoch: 1, Attempt: 1, Origin: "5f0c9d2e7b41",
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"process":"sms","sequence":"7","epoch":"1","attempt":1,"origin":"5f0c9d2e7b41","replay":false,"position":"c:1/42","id":"42","key":"","type":"","created_at":"2026-01-02T03:04:05.000000Z","headers":{},"payload":{"seats":2},"dedup_key":"public.bookings/42/1767323045000000"}
}
