package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/broker"
	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// sharedTopic is one topic of a Kafka that two processes send to: one of them in transactions.
type sharedTopic struct {
	*broker.Kafka
	clock history.Clock
}

func openCellTopic(ctx context.Context, clock history.Clock) (cellReceiver, error) {
	server, err := broker.StartKafka(ctx, broker.KafkaConfig{})
	if err != nil {
		return nil, err
	}
	t := sharedTopic{server, clock}
	if err := t.administer(ctx, t.create); err != nil {
		return nil, errors.Join(err, t.close(ctx))
	}
	return t, nil
}

func (t sharedTopic) administer(ctx context.Context, do func(context.Context, *kadm.Client) error) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(t.Addr()))
	if err != nil {
		return err
	}
	defer client.Close()
	return do(ctx, kadm.NewClient(client))
}

// create makes the topic. One of its name that is being deleted is waited for.
func (t sharedTopic) create(ctx context.Context, admin *kadm.Client) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		answer, err := admin.CreateTopic(ctx, 1, 1, nil, sharedName)
		if err = errors.Join(err, answer.Err); err == nil || !pause(ctx, 100*time.Millisecond) {
			return err
		}
	}
}

func (t sharedTopic) name() string { return "Kafka topic" }

func (t sharedTopic) processes() []cellProcess {
	sink := func(more string) string {
		return fmt.Sprintf("      kafka: {brokers: [\"%s\"], topic: %s, window: 7, timeout: 5s%s}", t.Addr(), sharedName, more)
	}
	return []cellProcess{
		{name: "cell_bare_topic_1", table: "bare", sink: sink(""), checkpoint: 7},
		{name: "cell_bare_topic_2", table: "bare", sink: sink(", transactional_id: cell-2"), checkpoint: 7},
	}
}

// read returns what is committed in the topic, from its beginning.
func (t sharedTopic) read(ctx context.Context) (all []history.Receipt, err error) {
	var end int64
	err = t.administer(ctx, func(ctx context.Context, admin *kadm.Client) error {
		offsets, err := admin.ListCommittedOffsets(ctx, sharedName)
		if err != nil {
			return err
		}
		offset, _ := offsets.Lookup(sharedName, 0)
		end = offset.Offset
		return offset.Err
	})
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(t.Addr()), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{sharedName: {0: kgo.NewOffset().AtStart()}}))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for next := int64(0); next < end; {
		fetched := client.PollFetches(ctx)
		if err := fetched.Err(); err != nil {
			return all, err
		}
		for _, m := range fetched.Records() {
			next = m.Offset + 1
			if !m.Attrs.IsControl() {
				all = append(all, t.receipt(m))
			}
		}
	}
	return all, nil
}

func (t sharedTopic) receipt(m *kgo.Record) history.Receipt {
	headers := map[string]string{}
	for _, h := range m.Headers {
		headers[h.Key] = string(h.Value)
	}
	sequence, _ := strconv.ParseInt(headers["ordered-sequence"], 10, 64)
	epoch, _ := strconv.ParseInt(headers["ordered-epoch"], 10, 64)
	return history.Receipt{
		T: t.clock.At(m.Timestamp), Process: headers["ordered-process"], Receiver: t.name(), Key: headers["ordered-key"], Hash: digest(m.Value),
		DedupKey: headers["event_id"], Sequence: sequence, Epoch: epoch,
	}
}

// empty deletes the topic and makes it anew.
func (t sharedTopic) empty(ctx context.Context) error {
	return t.administer(ctx, func(ctx context.Context, admin *kadm.Client) error {
		answers, err := admin.DeleteTopics(ctx, sharedName)
		if err = errors.Join(err, answers.Error()); err != nil {
			return err
		}
		pause(ctx, 300*time.Millisecond)
		return t.create(ctx, admin)
	})
}

func (t sharedTopic) close(ctx context.Context) error { return t.Kafka.Close(ctx) }
