package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

const (
	// maxAge is how long a link lives. A broker forgets the numbers of a producer id a day after its last batch in a
	// partition (producer.id.expiration.ms), and then takes any number.
	maxAge = time.Hour

	// metadataAge is how soon a client asks again where a partition is.
	metadataAge = 500 * time.Millisecond

	// patience is how long the client asks again after an error that may pass. It is at most a third of
	// Config.Timeout. Such an error is that a topic is missing, which a broker that has just started also answers, or
	// that replicas are missing. After that time the broker's error is the error of the call. A time-out instead would
	// leave the outcome unknown.
	patience = 10 * time.Second

	// abortTimeout bounds the end of a transaction that does not count.
	abortTimeout = time.Second

	// transactionMargin is the time that Kafka gives a transaction beyond the time of its window.
	transactionMargin = 10 * time.Second

	// enough is enough time for the first records of a link, however long it took to make the link.
	enough = 10 * time.Second

	// maxAnswer bounds one answer of a broker: a byte of it may claim an element that takes a hundred bytes in memory.
	// An honest answer has some 60 bytes for each partition of the topics that are sent to. The size of fetched data
	// is ours to set: see fetchBytes. But the first batch of it comes whole: see answerBytes.
	maxAnswer = 1 << 20

	// besideBatch is what an answer may have beside a batch, in bytes.
	besideBatch = 32 << 10
)

// answerBytes bounds one answer of a broker. It takes a batch of ours: otherwise the look for a loss would never find
// out anything where max_bytes is large.
func (c Config) answerBytes() int32 { return int32(max(maxAnswer, c.MaxBytes+besideBatch)) }

// link is a client with its producer id.
type link struct {
	client        *kgo.Client
	opened        time.Time
	epoch         cursor.Epoch // of the worker that opened it
	transactional bool
	written       written
	end           context.CancelFunc // of everything that the client waits for
	// topics are those in which a record was acknowledged: the client knows their partitions.
	topics map[string]bool
	// asked are the topics whose id was asked for.
	asked map[string]bool
	// unseen are the marks of earlier links that the sink still has to look at. looked means that it has waited for
	// them.
	unseen []mark
	looked bool
}

// open connects and gets a producer id. With a transactional id, that fences the producer that had it, and aborts any
// transaction that it left open.
func (s *Sink) open(ctx context.Context, epoch cursor.Epoch) (*link, error) {
	l := &link{opened: time.Now(), epoch: epoch, transactional: s.config.TransactionalID != "", topics: map[string]bool{}, asked: map[string]bool{}, unseen: s.stood.marks()}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	l.end = end
	var err error
	if l.client, err = kgo.NewClient(append(s.options(), kgo.Dialer(s.dialer(&l.written)), kgo.WithContext(life), kgo.WithHooks(&l.written))...); err != nil {
		end()
		return nil, err
	}
	defer context.AfterFunc(ctx, end)() // the client waits ten seconds for a broker that is silent
	if err = l.client.Ping(ctx); err == nil {
		_, _, err = l.client.ProducerID(ctx)
	}
	if ctx.Err() != nil { // a worker that was paused until now may have lost its lease
		err = context.Cause(ctx)
	}
	if err != nil {
		l.close()
		return nil, heard(err)
	}
	return l, nil
}

// late returns an error if less of a call's time is left than it took to make a link, and less than enough. Records
// that were sent now could land without an answer in time, once more at each attempt. To send the first records the
// client connects to their leader, and it asks as often as it does to make a link, or less often. The next call has
// the link, and all of the time.
func late(ctx context.Context, took time.Duration) error {
	end, limited := ctx.Deadline()
	if left := time.Until(end); limited && left < took && left < enough {
		return &lateError{took, took + left}
	}
	return nil
}

// lateError: a link took too long to send records in the same call. The link is kept.
type lateError struct{ took, of time.Duration }

func (e *lateError) Error() string {
	return fmt.Sprintf("the connection took %v of %v", e.took.Round(time.Millisecond), e.of.Round(time.Millisecond))
}

// options returns the options that the package comment's section on order needs, and those of the configuration.
func (s *Sink) options() []kgo.Opt {
	c := s.config
	tries := max(2, int(c.patience()/metadataAge)) // a leader that moved is found by the second
	options := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...),
		kgo.ClientID("ordered-dispatcher"),
		kgo.SoftwareNameAndVersion("ordered-dispatcher", "1"),
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.ManualFlushing(),
		kgo.StopProducerOnDataLossDetected(),
		kgo.MaxBufferedRecords(c.Window), // the client must take a window without a wait: see written.held
		kgo.ProducerBatchMaxBytes(int32(c.MaxBytes)),
		kgo.ProducerBatchCompression(codec(c.Compression)),
		kgo.RecordPartitioner(newPartitioner()),
		kgo.MetadataMinAge(metadataAge),
		kgo.UnknownTopicRetries(tries),
		kgo.RetryTimeoutFn(c.retries),
		kgo.RecordRetries(tries), // for a batch whose last request was answered; the client never gives up any other
		kgo.DisableClientMetrics(),
		kgo.BrokerMaxReadBytes(c.answerBytes()), kgo.FetchMaxBytes(maxAnswer / 4), kgo.FetchMaxPartitionBytes(maxAnswer / 4), // the client compares them
	}
	if c.SASL.Mechanism != "" {
		options = append(options, kgo.SASL(c.SASL.mechanism()))
	}
	if c.TransactionalID != "" {
		options = append(options, kgo.TransactionalID(c.TransactionalID), kgo.TransactionTimeout(c.Timeout+transactionMargin))
	}
	return append(options, s.more...)
}

// patience is how long the client asks again: see the constant.
func (c Config) patience() time.Duration { return min(patience, c.Timeout/3) }

func codec(name string) kgo.CompressionCodec {
	switch name {
	case "gzip":
		return kgo.GzipCompression()
	case "snappy":
		return kgo.SnappyCompression()
	case "lz4":
		return kgo.Lz4Compression()
	case "zstd":
		return kgo.ZstdCompression()
	default:
		return kgo.NoCompression()
	}
}

// described is a topic as its broker describes it.
type described struct {
	id      topicID
	leaders map[int32]int32 // of the partitions that have one
	err     error
}

// describe asks about topics.
func (l *link) describe(ctx context.Context, topics []string) (map[string]described, error) {
	request := kmsg.NewPtrMetadataRequest()
	request.AllowAutoTopicCreation = false
	for _, topic := range topics {
		one := kmsg.NewMetadataRequestTopic()
		one.Topic = &topic
		request.Topics = append(request.Topics, one)
	}
	response, err := request.RequestWith(ctx, l.client)
	if err != nil {
		return nil, ended(ctx, heard(err))
	}
	all := map[string]described{}
	for _, topic := range response.Topics {
		if topic.Topic != nil {
			all[*topic.Topic] = described{topic.TopicID, leaders(topic.Partitions), kerr.ErrorForCode(topic.ErrorCode)}
		}
	}
	return all, nil
}

func leaders(partitions []kmsg.MetadataResponseTopicPartition) map[int32]int32 {
	all := map[int32]int32{}
	for _, p := range partitions {
		if p.Leader >= 0 {
			all[p.Partition] = p.Leader
		}
	}
	return all
}

// knows reports whether records of a topic can be on their way together. In a transaction they can: if one fails,
// none counts.
func (l *link) knows(topic string) bool { return l.transactional || l.topics[topic] }

// superseded reports whether another worker may have had the transactional id since. The epoch of the lease has
// grown, and with it the right to ask for the id.
func (l *link) superseded(epoch cursor.Epoch) bool { return l.transactional && epoch > l.epoch }

// old reports whether the link has to be renewed.
func (l *link) old() bool { return time.Since(l.opened) > maxAge }

// close ends the connections: nothing is sent after it.
func (l *link) close() {
	l.end()
	l.client.Close()
}
