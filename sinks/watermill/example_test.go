package watermill_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/watermill"
)

// In a program the processor calls Deliver. docs/sinks/watermill.md has this.
func ExampleSink() {
	_ = func(publisher message.Publisher, store *cursor.Store, source processor.Source) (*processor.Process, error) {
		sink, err := watermill.New(watermill.Config{Publisher: publisher, Topic: "bookings.{{lower .Type}}"})
		process, err := processor.New(processor.Config{Process: "bookings", Store: store, Source: source, Dispatch: processor.Each(sink)})
		return process, err
	}
}

// A GoChannel keeps the guarantee if Publish waits for the subscriber.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	channel := gochannel.NewGoChannel(gochannel.Config{BlockPublishUntilSubscriberAck: true}, nil)
	defer channel.Close()
	sink, err := watermill.New(watermill.Config{Publisher: channel, Topic: "bookings.{{lower .Type}}"})
	if err != nil {
		panic(err)
	}
	messages, err := channel.Subscribe(ctx, "bookings.made")
	if err != nil {
		panic(err)
	}
	go func() {
		for m := range messages {
			fmt.Printf("%s of %s: %s\n", m.Metadata.Get("ordered-sequence"), m.Metadata.Get("ordered-process"), m.Payload)
			m.Ack()
		}
	}()
	record := processor.Record{Table: "public.bookings", ID: "7", Type: "Made", Payload: json.RawMessage(`{"seats": 2}`)}
	err = sink.Deliver(ctx, processor.Delivery{Record: record, Process: "sms", Sequence: 1, Epoch: 1, Attempt: 1})
	fmt.Println("delivered:", err == nil)
	// Output:
	// 1 of sms: {"seats": 2}
	// delivered: true
}
