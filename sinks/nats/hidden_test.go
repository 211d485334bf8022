package nats_test

import (
	"bufio"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/nats"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
)

// talker is a server of that version which answers each request with what answer says of its subject.
func talker(t *testing.T, version string, answer func(subject string) string) (address string) {
	t.Helper()
	return tcptest.Serve(t, func(conn net.Conn) {
		fmt.Fprintf(conn, `INFO {"server_id":"s","version":%q,"max_payload":1000000,"headers":true,"jetstream":true}`+"\r\n", version)
		var subscription string
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			words := append(strings.Fields(lines.Text()), "")
			switch words[0] {
			case "PING":
				fmt.Fprint(conn, "PONG\r\n")
			case "SUB":
				subscription = words[len(words)-2]
			case "PUB", "HPUB":
				text := answer(words[1])
				if strings.HasPrefix(text, "-ERR") {
					fmt.Fprint(conn, text+"\r\n")
					continue
				}
				fmt.Fprintf(conn, "MSG %s %s %d\r\n%s\r\n", words[2], subscription, len(text), text)
			}
		}
	})
}

// streamInfo is the answer of a server about its stream.
func streamInfo(t *testing.T, config map[string]any) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"type": "io.nats.jetstream.api.v1.stream_info_response", "config": config, "state": map[string]any{}})
	require.NoError(t, err)
	return string(text)
}

func talkedTo(t *testing.T, address string, change func(*nats.Config)) *nats.Sink {
	t.Helper()
	return sinktest.Made(t, nats.New, nats.Config{URL: "nats://" + address, Stream: "our$orders", Subject: "bookings.{{.Type}}", Timeout: 5 * time.Second}, change)
}

func hide(c *nats.Config) { c.HideAnswers = true }

// A stream's name, its subjects and the version of a server are words of the server's, too.
func TestGuard_HiddenAnswersHaveNothingOfTheServersOwn(t *testing.T) {
	t.Parallel()
	const marker = sinktest.Marker
	for name, c := range map[string]struct {
		version, answer string
		ours            []string
	}{
		"its version":    {"1.0.0-" + marker, "", []string{"the server is too old: the fence needs 2.11 or later"}},
		"other subjects": {"2.12.0", streamInfo(t, map[string]any{"name": marker, "subjects": []string{marker + ".>"}}), []string{"does not take the fence's subject", "nats stream edit 'our$orders' --subjects=…", "or set fence to one"}},
		"a mirror":       {"2.12.0", streamInfo(t, map[string]any{"name": marker, "mirror": map[string]any{"name": marker}}), []string{"it is a mirror"}},
		"a transform": {"2.12.0", streamInfo(t, map[string]any{"name": marker, "subjects": []string{">"}, "subject_transform": map[string]any{"src": ">", "dest": marker + ".>"}}),
			[]string{"its subject_transform moves the fence's subject", "let its source leave that out"}},
		"no JSON":    {"2.12.0", `{"type": WORDS}`, []string{"look at the stream: the answer is not the JSON that was expected"}},
		"other JSON": {"2.12.0", `{"config": {"max_msgs": "` + marker + `"}}`, []string{"the answer is not the JSON that was expected"}},
		"a time":     {"2.12.0", `{"config": {"name": "S"}, "created": "` + marker + `"}`, []string{"look at the stream: the answer is not the JSON that was expected"}},
		"a storage":  {"2.12.0", `{"config": {"storage": "` + marker + `"}}`, []string{"look at the stream: the answer is not the JSON that was expected"}},
		"an error":   {"2.12.0", `{"error": {"code": 503, "err_code": 10008, "description": "` + marker + `"}}`, []string{"err_code=10008 description=[…]; the cluster has no leader for JetStream"}},
		"a denial":   {"2.12.0", `-ERR 'Permissions Violation for Publish to "` + marker + `"'`, []string{"nothing was sent"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := talker(t, c.version, func(string) string { return c.answer })
			s := talkedTo(t, address, hide)
			sinktest.Hides(t, s, append(c.ours, "publish to ", address)...)
			_, err := s.Check(t.Context(), "sms")
			sinktest.RequireHidden(t, err, c.ours...)
		})
	}
}

// What the client cannot decode has errors of many types, and each may quote it.
func TestGuard_HiddenAnswersHaveNothingThatCannotBeDecoded(t *testing.T) {
	t.Parallel()
	const marker = sinktest.Marker
	ours := streamInfo(t, map[string]any{"name": "our$orders", "subjects": []string{"bookings.>", fence}})
	header := base64.StdEncoding.EncodeToString([]byte("NATS/1.0\r\n" + marker + "\r\n\r\n"))
	for name, c := range map[string]struct {
		info, message, ack string // "": as expected
		want               string
	}{
		"the time of a claim":    {message: `{"message": {"time": "` + marker + `"}}`, want: "read the last claim: the answer is not the JSON that was expected"},
		"the headers of a claim": {message: `{"message": {"hdrs": "` + header + `"}}`, want: "read the last claim: nats: message could not decode headers"},
		"an acknowledgement":     {ack: `{"stream": "S", "seq": "` + marker + `"}`, want: "claim the stream: "},
		"a retention":            {info: streamInfo(t, map[string]any{"retention": marker}), want: "look at the stream: the answer is not the JSON that was expected"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := talker(t, "2.12.0", func(subject string) string {
				switch {
				case strings.HasPrefix(subject, "$JS.API.STREAM.INFO."):
					return cmp.Or(c.info, ours)
				case strings.HasPrefix(subject, "$JS.API.STREAM.MSG.GET."):
					return cmp.Or(c.message, `{"error": {"code": 404, "err_code": 10037}}`)
				default:
					return cmp.Or(c.ack, `{"stream": "our$orders", "seq": 1}`)
				}
			})
			sinktest.Hides(t, talkedTo(t, address, hide), c.want, "publish to ", address)
		})
	}
}

func TestGuard_NoWordOfARecordIsQuoted(t *testing.T) {
	t.Parallel()
	answer, err := json.Marshal(map[string]any{"error": map[string]any{"code": 503, "err_code": 10008, "description": "cannot store " + sinktest.Repeated}})
	require.NoError(t, err)
	for said, ours := range map[string]string{
		string(answer): "code=503 err_code=10008 description=cannot store",
		`-ERR 'Permissions Violation for Publish to "` + sinktest.Repeated + `"'`: "nothing was sent",
		streamInfo(t, map[string]any{"subjects": []string{fence}}):                `the stream does not take subject "{{.Key}}": nothing is published there; add a pattern to the stream's subjects`,
	} {
		s := talkedTo(t, talker(t, "2.12.0", func(string) string { return said }), func(c *nats.Config) { c.Subject = "{{.Key}}" })
		_, err := s.DeliverBatch(t.Context(), sinktest.Private())
		sinktest.RequirePrivate(t, err, ours, "nothing was sent")
	}
}

// A word of the server's that is one of ours, too, is hidden where the server said it.
func TestGuard_HiddenAnswersHideNoWordOfOurs(t *testing.T) {
	t.Parallel()
	for _, word := range []string{"server", "s", "1", "nothing was sent"} {
		address := talker(t, "2.12.0", func(string) string {
			return `{"error": {"code": 503, "err_code": 10008, "description": "` + word + `"}}`
		})
		s := talkedTo(t, address, hide)
		_, err := s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
		require.EqualError(t, err, "publish to "+s.String()+": nothing was sent: look at the stream: nats: API error: code=503 err_code=10008 description=[…]; the cluster has no leader for JetStream: start its servers")
	}
}

// The command is to be pasted: what a server calls its stream and its subjects is in it as a text.
func TestDeliverBatch_NoWordOfAServerIsAWordOfACommand(t *testing.T) {
	t.Parallel()
	address := talker(t, "2.12.0", func(string) string {
		return streamInfo(t, map[string]any{"name": "x; id", "subjects": []string{"a", "$(id)'`id`\n.>"}})
	})
	s := talkedTo(t, address, func(*nats.Config) {})
	_, err := s.DeliverBatch(t.Context(), sinktest.Deliveries(1, 1))
	require.True(t, processor.IsRefused(err), err)
	require.ErrorContains(t, err, `nats stream edit 'our$orders' --subjects='a,$(id)'\''`+"`id`"+`\u000a.>,ordered-fence.sms', or set fence`)
	require.NotContains(t, err.Error(), "x; id")
}

// The record has a word of the stream's subjects. A command with […] in it would take the subject away.
func TestDeliverBatch_ACommandStaysWholeBesideARecordWithItsWords(t *testing.T) {
	t.Parallel()
	address := talker(t, "2.12.0", func(string) string { return streamInfo(t, map[string]any{"subjects": []string{"invoices.>"}}) })
	ds := sinktest.Deliveries(1, 1)
	ds[0].Key = "invoices"
	_, err := talkedTo(t, address, func(*nats.Config) {}).DeliverBatch(t.Context(), ds)
	require.ErrorContains(t, err, "--subjects='invoices.>,ordered-fence.sms'")
}
