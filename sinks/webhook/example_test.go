package webhook_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
)

func Example() {
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Println(r.Header.Get("Ordered-Sequence"), r.Header.Get("Idempotency-Key"), string(body))
	}))
	defer receiver.Close()

	sink, err := webhook.New(webhook.Config{URL: receiver.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = sink.Deliver(context.Background(), processor.Delivery{
		Record:   processor.Record{Table: "public.bookings", ID: "42", Payload: []byte(`{"seats": 2}`)},
		Process:  "booking_sms",
		Sequence: 7,
		Epoch:    1,
		Attempt:  1,
	})
	fmt.Println(err)
	// Output:
	// 7 public.bookings/42 {"seats": 2}
	// <nil>
}
