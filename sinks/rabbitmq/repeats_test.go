package rabbitmq_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret/secrettest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/rabbitmq"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// Methods of AMQP 0-9-1, by their class and number.
const (
	connectionStart   = 10<<16 | 10
	connectionStartOK = 10<<16 | 11
	connectionTune    = 10<<16 | 30
	connectionOpen    = 10<<16 | 40
	connectionOpenOK  = 10<<16 | 41
	connectionClose   = 10<<16 | 50
	channelOpen       = 20<<16 | 10
	channelOpenOK     = 20<<16 | 11
	channelClose      = 20<<16 | 40
	confirmSelect     = 85<<16 | 10
)

// refuse speaks AMQP, and answers a method with a refusal in its own words.
func refuse(conn net.Conn, refused uint32, words string) {
	_, _ = io.ReadFull(conn, make([]byte, len("AMQP0091")))
	long := func(text string) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
	}
	send(conn, 0, connectionStart, []byte{0, 9}, long(""), long("PLAIN"), long("en_US"))
	const accessRefused = 403
	closing := append(binary.BigEndian.AppendUint16(nil, accessRefused), append([]byte{byte(len(words))}, words...)...)
	for {
		channel, method, err := receive(conn)
		switch {
		case err != nil:
			return
		case method == refused && channel == 0:
			send(conn, 0, connectionClose, closing, make([]byte, 4))
		case method == refused:
			send(conn, channel, channelClose, closing, make([]byte, 4))
		case method == connectionStartOK:
			send(conn, 0, connectionTune, []byte{0, 10, 0, 2, 0, 0, 0, 0})
		case method == connectionOpen:
			send(conn, 0, connectionOpenOK, []byte{0})
		case method == channelOpen:
			send(conn, channel, channelOpenOK, make([]byte, 4))
		}
	}
}

const endOfFrame = 0xCE

func send(w io.Writer, channel uint16, method uint32, arguments ...[]byte) {
	payload := binary.BigEndian.AppendUint32(nil, method)
	for _, argument := range arguments {
		payload = append(payload, argument...)
	}
	frame := binary.BigEndian.AppendUint16([]byte{1}, channel)
	frame = append(binary.BigEndian.AppendUint32(frame, uint32(len(payload))), payload...)
	_, _ = w.Write(append(frame, endOfFrame))
}

// receive reads a frame; its method is 0 if it has none.
func receive(r io.Reader) (channel uint16, method uint32, err error) {
	head := make([]byte, 7)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, 0, err
	}
	payload := make([]byte, binary.BigEndian.Uint32(head[3:])+1)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, 0, err
	}
	if head[0] == 1 {
		method = binary.BigEndian.Uint32(payload)
	}
	return binary.BigEndian.Uint16(head[1:]), method, nil
}

func TestGuard_ABrokerThatRepeatsTheLoginDisclosesNothing(t *testing.T) {
	t.Parallel()
	for where, method := range map[string]uint32{"at the login": connectionStartOK, "at the virtual host": connectionOpen, "in a channel": confirmSelect} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			for _, form := range strings.Fields(secrettest.Forms(secrettest.Canary)) { // an answer has 255 bytes
				address := tcptest.Serve(t, func(conn net.Conn) { refuse(conn, method, secrettest.Words+form) })
				for _, hide := range []bool{false, true} {
					s, err := rabbitmq.New(rabbitmq.Config{
						URL: "amqp://u:" + url.QueryEscape(secrettest.Canary) + "@" + address + "/", Exchange: "x", RoutingKey: "k", HideAnswers: hide,
					})
					require.NoError(t, err)
					_, err = s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
					require.NoError(t, s.Close())
					require.ErrorContains(t, err, "Exception (403)")
					secrettest.RequireMasked(t, err, hide)
				}
			}
		})
	}
}
