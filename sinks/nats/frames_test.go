package nats

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/waittest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// spoken is a connection on which a server says something.
type spoken struct {
	net.Conn
	from   io.Reader
	closed bool
}

func (s *spoken) Read(p []byte) (int, error)  { return s.from.Read(p) }
func (s *spoken) Write(p []byte) (int, error) { return len(p), nil }
func (s *spoken) Close() error                { s.closed = true; return nil }

func TestFramed_EndsWhatWouldExhaustTheMemory(t *testing.T) {
	t.Parallel()
	const info = "INFO {}\r\n"
	endless := strings.Repeat("A", maxLine+1)
	for name, said := range map[string]string{
		"an INFO without an end":         "INFO " + endless,
		"an error without an end":        info + "-ERR " + endless,
		"a message's line without end":   info + "MSG " + endless,
		"a size that overflows":          info + "MSG s 1 9223372036854775807\r\n",
		"a size that takes all memory":   info + "MSG s 1 99999999999\r\n",
		"a size below zero":              info + "HMSG s 1 2 -5\r\n",
		"a line after a message":         info + "MSG s 1 2\r\nab\r\n" + endless,
		"a line that grows by its bytes": info + "+OK\r\nPI" + endless,
		"bytes after a message":          info + "MSG s 1 0\r\nabHMSG x 1 12 68157440\r\nMSG s 1 9223372036854775807\r\nx",
		"no line's end after a message":  info + "MSG s 1 2\r\nab\n",
		"an error that begins a line":    info + "-ERR \nHMSG permissions violation 12 68157440\r\nMSG s 1 5\r\n",
		"an INFO that begins a line":     info + "INFO \r\nHMSG x 1 12 68157440\r\n",
		"a line's end within a line":     info + "MSG s 1 5\r3\nabc\r\n",
		"a line without its return":      info + "PING\n",
		"a message without a size":       info + "MSG \r\n",
		"a word before a line":           info + " MSG s 1 0\r\n\r\n",
		"a line of no word":              info + "\r\n",
		"a line of another protocol":     "HTTP/1.1 400 Bad Request\r\n",
		"another word after PING":        info + "PING x\r\n",
	} {
		for way, from := range map[string]io.Reader{"whole": strings.NewReader(said), "byte by byte": iotest.OneByteReader(strings.NewReader(said))} {
			server := &spoken{from: from}
			read, err := io.ReadAll(&framed{Conn: server})
			require.ErrorContains(t, err, "is it a NATS server?", name+", "+way)
			require.True(t, server.closed, name)
			require.LessOrEqual(t, len(read), maxLine+len(info)+20, name)
		}
	}
}

// An answer of the server is decoded, and takes many times its bytes; a message is not.
func TestFramed_EndsAnAnswerOfManyElements(t *testing.T) {
	t.Parallel()
	body := `{"alternates":[` + strings.Repeat("{},", 1<<20) + "{}]}"
	server := &spoken{from: strings.NewReader(fmt.Sprintf("INFO {}\r\nMSG s 1 %d\r\n%s\r\n", len(body), body))}
	read, err := io.ReadAll(&framed{Conn: server})
	require.ErrorContains(t, err, "is it a NATS server?")
	require.True(t, server.closed)
	require.Less(t, len(read), len(body)/2)
}

func TestFramed_EndsAMessageWithHeadersThatIsNoStatus(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"alternates":[` + strings.Repeat("{},", 1<<20) + "{}]}", strings.Repeat("%x:\r\n", 1<<20)} {
		server := &spoken{from: strings.NewReader(fmt.Sprintf("INFO {}\r\nHMSG s 1 12 %d\r\nNATS/1.0\r\n\r\n%s\r\n", 12+len(body), body))}
		read, err := io.ReadAll(&framed{Conn: server})
		require.ErrorIs(t, err, errHeaders)
		require.True(t, server.closed)
		require.Less(t, len(read), len(body)/2)
	}
	status := "INFO {}\r\nHMSG s 1 r 16 16\r\nNATS/1.0 503\r\n\r\n\r\n"
	read, err := io.ReadAll(&framed{Conn: &spoken{from: strings.NewReader(status)}})
	require.NoError(t, err)
	require.Equal(t, status, string(read))
}

func TestFramed_LetsEveryMessagePass(t *testing.T) {
	t.Parallel()
	payload := strings.Repeat("x", 3*maxLine) // no line ends in it
	said := "INFO {}\r\nPING\r\nMSG a.b 1 " + fmt.Sprint(len(payload)) + "\r\n" + payload + "\r\nHMSG a 1 r 5 7\r\nMSG 9\n-\r\n+OK\r\nMSG s 1 0\r\n\r\n" +
		"-ERR 'a word'\r\nINFO {} \r\nPONG\r\nmsg\ts 1\t1\r\nx\r\n"
	for _, from := range []io.Reader{strings.NewReader(said), iotest.OneByteReader(strings.NewReader(said)), iotest.HalfReader(strings.NewReader(said))} {
		f := &framed{Conn: &spoken{from: from}}
		read, err := io.ReadAll(f)
		require.NoError(t, err)
		require.Equal(t, said, string(read))
		require.Zero(t, f.payload)
		require.Empty(t, f.after)
	}
}

func TestFramed_LeavesTLSAlone(t *testing.T) {
	t.Parallel()
	said := bytes.Repeat([]byte{0x17}, 2*maxLine)
	f := &framed{Conn: &spoken{from: bytes.NewReader(said)}}
	_, err := f.Write([]byte{0x16, 3, 1})
	require.NoError(t, err)
	read, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, said, read)
}

// A record's bytes begin a write of their own if those before them filled the client's buffer.
func TestFramed_ARecordTurnsItNotOff(t *testing.T) {
	t.Parallel()
	f := &framed{Conn: &spoken{from: strings.NewReader("INFO {}\r\nMSG s 1 9223372036854775807\r\n")}}
	for _, said := range []string{"CONNECT {}\r\n", "\x16\x03\x01"} {
		_, err := f.Write([]byte(said))
		require.NoError(t, err)
	}
	_, err := io.ReadAll(f)
	require.ErrorIs(t, err, errSize)
}

// The client would panic, and end the program.
func TestDeliver_AServerOutOfStepIsLeft(t *testing.T) {
	t.Parallel()
	for _, said := range []string{
		"MSG s 1 0\r\nabHMSG x 1 12 68157440\r\n",
		"MSG s 1 2\r0\nab\r\nHMSG x 1 12 68157440\r\n\r\n",
		"-ERR \nHMSG permissions violation 12 68157440\r\n",
	} {
		address := tcptest.Serve(t, func(c net.Conn) {
			fmt.Fprint(c, `INFO {"server_id":"s","version":"2.12.0","max_payload":1000000,"headers":true,"jetstream":true}`+"\r\n")
			for lines := bufio.NewScanner(c); lines.Scan(); {
				if strings.HasPrefix(lines.Text(), "PING") {
					fmt.Fprint(c, "PONG\r\n"+said+"MSG s 1 9223372036854775807\r\nx")
				}
			}
		})
		sink, err := New(Config{URL: "nats://" + address, Stream: "S", Subject: "s.x", Timeout: time.Minute})
		require.NoError(t, err)
		_, err = sink.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
		require.ErrorContains(t, err, "is it a NATS server?")
	}
}

// The client flushes in one goroutine and reads in another. The race detector judges.
func TestFramed_WritesWhileItReads(t *testing.T) {
	t.Parallel()
	f := &framed{Conn: &spoken{from: strings.NewReader(strings.Repeat("PING\r\n", 1000))}}
	written := make(chan error)
	go func() {
		var err error
		for range 1000 {
			if _, fault := f.Write([]byte("PONG\r\n")); fault != nil {
				err = fault
			}
		}
		written <- err
	}()
	_, err := io.ReadAll(iotest.OneByteReader(f))
	require.NoError(t, err)
	require.NoError(t, waittest.Receive(t, written, "all is written"))
}

func TestOpen_AServerThatNeverEndsItsFirstLineIsLeft(t *testing.T) {
	t.Parallel()
	sent := make(chan int, 1)
	address := tcptest.Serve(t, func(c net.Conn) {
		n, chunk := 0, bytes.Repeat([]byte("A"), 1<<16)
		_, err := io.WriteString(c, `INFO {"server_id":"`)
		for err == nil && n < 1<<26 { // 64 MiB, unless the sink ends it
			var m int
			m, err = c.Write(chunk)
			n += m
		}
		sent <- n
	})
	sink, err := New(Config{URL: "nats://" + address, Stream: "S", Subject: "s.x", Timeout: time.Minute})
	require.NoError(t, err)
	_, err = sink.open(context.Background())
	require.Error(t, err)
	require.Less(t, waittest.Receive(t, sent, "the server is hung up on"), 1<<25)
}
