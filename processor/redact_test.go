package processor_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sources/table"
)

func TestRedact_LeavesTheWordsOfTheReceiver(t *testing.T) {
	t.Parallel()
	record := processor.Record{
		ID: "4711", Key: "customer-77",
		Headers: map[string]string{"authorization": "Bearer topsecret"},
		Payload: []byte(`{"customer_name": "Jörg Müller", "card": 4111111111111111, "note": "not \"valid\"\nuntil monday", "cc": "DE", "n": 3, "big": 1e400,
			"ok": true, "by_mail": {"eve@example.org": 1.5}, "booking_id": 4711}`),
	}
	for text, want := range map[string]string{
		`no such customer`:                                `no such customer`,
		`no_such_field is required`:                       `no_such_field is required`,
		`booking 4711: by_mail is wrong`:                  `booking 4711: by_mail is wrong`,
		`Müller is unknown`:                               `[…] is unknown`,
		`JÖRG MÜLLER is unknown`:                          `[…] is unknown`,
		`{"customer_name":"J\u00f6rg M\u00FCller"}`:       `{"customer_name":"[…]"}`,
		`<b>M&uuml;ller</b>`:                              `<b>[…]</b>`,
		`card 4111111111111111 expired`:                   `card […] expired`,
		`card 41111111… expired`:                          `card […]… expired`,
		`got "not \"valid\"\nuntil monday"`:               `got "not \"[…]\"\n[…]"`,
		`eve@example.org bounced`:                         `[…] bounced`,
		`token topsecret of customer-77`:                  `token […] of […]`,
		`country DE is not served, nor is it valid`:       `country […] is not served, nor is it […]`,
		`field 3, 1.5, 1e400`:                             `field […]`,
		`true`:                                            `true`,
		``:                                                ``,
		`bad: {"note": "NOT \"VALID\"\nUNTIL MONDAY"}`:    `bad: {"note": "NOT \"[…]\"\n[…]"}`,
		"\xff\xfe Müller \xff":                            "\xff\xfe […] \xff",
		`[…] Müller`:                                      `[…]`,
		`undelivered, monda, mond, mon: 4111111111111112`: `undelivered, […], mon: 4111111111111112`,
	} {
		require.Equal(t, want, record.Redact(text), text)
	}
}

// What the receiver says of itself is no data, though the record has the same digits.
func TestRedact_LeavesTimesAndLineNumbers(t *testing.T) {
	t.Parallel()
	record := processor.Record{
		ID: "4711", Key: "9",
		Payload: []byte(`{"created_at": "2026-11-22T09:15:04.123Z", "slot": "2026-11-24 14:30:00", "seats": 12, "rows": [15, 22, 9, 2026], "pin": 120304, "a": "column"}`),
	}
	for text, want := range map[string]string{
		`[2026-11-22 09:15:05,120] rejected`:               `[2026-11-22 09:15:05,120] rejected`,
		`at 2026-11-22T09:15:04Z: 12 seats are too many`:   `at 2026-11-22T09:15:04Z: […] seats are too many`,
		`Sun, 22 Nov 2026 09:15:12 GMT: no`:                `Sun, 22 Nov 2026 09:15:12 GMT: no`,
		`slot 2026-11-24 14:30:00 is taken since 12:15:22`: `slot […] is taken since 12:15:22`,
		`got 2026-11-22T09:15:04.123Z`:                     `got […]`,
		`syntax error, line 12, column 15 (char 22)`:       `syntax error, line 12, column 15 (char 22)`,
		`File "book.py", line 12: 12 at book.py:12:9`:      `File "book.py", line 12: […] at book.py:12:9`,
		`2026-11-22, seat 12, pin 120304`:                  `[…], seat […], pin […]`,
	} {
		require.Equal(t, want, record.Redact(text), text)
		require.Equal(t, want, record.Redact(record.Redact(text)), "once more: "+text)
	}
}

// TestRedact_LeavesWhatTheTimeOfCreationHas: the position shows that time, and its numbers are in many texts.
func TestRedact_LeavesWhatTheTimeOfCreationHas(t *testing.T) {
	t.Parallel()
	for _, created := range []string{"2026-11-28T15:14:21.123456+00:00", "2026-11-28T16:14:21.123456+01:00", "2026-11-28T15:14:21.123456"} {
		record := processor.Record{ID: "4711", CreatedAt: time.Date(2026, 11, 28, 15, 14, 21, 123_456_000, time.UTC), Payload: []byte(`{"at": "` + created + `", "n": 12}`)}
		require.Equal(t, `/versions/3.11.7/bin/python3: 11 and […] of 2026`, record.Redact(`/versions/3.11.7/bin/python3: 11 and 12 of 2026`), created)
		record.CreatedAt = record.CreatedAt.Add(time.Microsecond)
		require.Equal(t, `3.[…].7`, record.Redact(`3.11.7`), "another time")
		record.CreatedAt = time.Time{}
		require.Equal(t, `3.[…].7`, record.Redact(`3.11.7`), "the position has none")
	}
}

// Go's client calls it "HTTP/1.x". Short numbers are data elsewhere.
func TestRedact_LeavesTheVersionOfHTTP(t *testing.T) {
	t.Parallel()
	record := processor.Record{ID: "4711", Key: "9", Payload: []byte(`{"n": 1, "seats": [1.1, 2], "code": 123, "cc": "DE"}`)}
	for text, want := range map[string]string{
		`net/http: HTTP/1.x transport connection broken: malformed HTTP status code "0"`: `net/http: HTTP/1.x transport connection broken: malformed HTTP status code "0"`,
		`malformed HTTP response "HTTP/1.1 2 x"`:                                         `malformed HTTP response "HTTP/1.1 […] x"`,
		`HTTP/2 stream 1 of 123`:                                                         `HTTP/2 stream […] of […]`,
		`HTTP/123, http://de/1, XHTTP/1.1`:                                               `HTTP/[…], http://[…], XHTTP/[…]`,
	} {
		require.Equal(t, want, record.Redact(text), text)
	}
	record.Payload = []byte(`{"protocol": "HTTP/1.1"}`)
	require.Equal(t, `malformed […] version`, record.Redact(`malformed HTTP/1.1 version`), "it is the record's")
}

func TestRedact_APayloadThatIsNoJSONIsDataAsAWhole(t *testing.T) {
	t.Parallel()
	record := processor.Record{Payload: []byte(`name=Alice&card=4111`)}
	require.Equal(t, `the […] of […] is unknown`, record.Redact(`the name of alice is unknown`))
}

func TestRedact_TakesLittleTimeForLargePayloads(t *testing.T) {
	t.Parallel()
	record := processor.Record{Payload: []byte(`"` + strings.Repeat("x", 4<<20) + `"`)}
	require.Equal(t, "[…]", record.Redact("anything"))
	require.Equal(t, "anything", processor.Record{}.Redact("anything"))

	record.Payload = []byte(strings.Repeat("é", 1<<20)) // one word that is longer than any text
	require.Equal(t, "got […]…", record.Redact("got "+strings.Repeat("é", 1<<20)))
	record.Payload = []byte(`["` + strings.Repeat("word ", 200_000) + `", 17]`)
	require.Equal(t, "words: […] is wrong", record.Redact("words: word 17 is wrong"), "whatever the number of its words")
}

// Wherever a receiver puts the values of a record, none is left.
func TestRedact_LeavesNoValue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[A-Za-zäöü]{4,12}|[0-9]{1,9}|[a-z]{1,3}[0-9]{1,3}`)
		secret := func(label string) string { return "Q" + word.Draw(t, label) + "Q" } // of no word around
		values := []string{secret("payload"), secret("nested"), secret("header"), secret("key")}
		record := processor.Record{
			ID: "1", Key: values[3], Headers: map[string]string{"x": values[2]},
			Payload: fmt.Appendf(nil, `{"field": %q, "list": [1, {"deep": %q}]}`, values[0], "before "+values[1]+" behind"),
		}
		quote := rapid.SampledFrom([]string{"%s", `"%s"`, " %s ", `{\"a\":\"%s\"}`, "<%s>", "%s%%", "(%s", "%s…"})
		text := "answer: "
		for range rapid.IntRange(1, 5).Draw(t, "quotes") {
			text += fmt.Sprintf(quote.Draw(t, "quote"), rapid.SampledFrom(values).Draw(t, "value")) + ", and "
		}
		got := record.Redact(text)
		for _, value := range values {
			require.NotContains(t, got, value)
		}
		require.True(t, strings.HasPrefix(got, "answer: "))
		require.Equal(t, got, record.Redact(got), "what is redacted stays as it is")
	})
}

// What the processor itself says of a failure goes the same way as what a sink says.
func TestRedact_PanicsAndDecodingSayNothingOfTheRecord(t *testing.T) {
	t.Parallel()
	for name, dispatch := range map[string]processor.Dispatch{
		"panic": processor.Each(processor.SinkFunc(func(_ context.Context, d processor.Delivery) error {
			if d.ID == "1" {
				return nil
			}
			panic(fmt.Sprintf("cannot handle %s", d.Payload))
		})),
		"panic of a batch": processor.Batch(processor.BatchSinkFunc(func(_ context.Context, ds []processor.Delivery) (int, error) {
			panic(fmt.Sprintf("cannot handle %s", ds[1].Payload))
		})),
		"decode": processor.Each(processor.JSON(func(context.Context, struct{ ID int8 }, processor.Delivery) error { return nil })),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t)
			exec(t, pool, `INSERT INTO dispatch.bookings (customer, payload) VALUES ('CANARY', '{}'), ('CANARY', '{"id": 4711471147, "name": "CANARY"}')`)
			exec(t, pool, `DELETE FROM dispatch.bookings WHERE id = 1 AND $1`, name == "decode")
			var log logbook
			p := process(t, pool, dispatch, func(c *processor.Config) {
				c.Logger = log.logger()
				c.Retry.Attempts = 1
				c.Source = payloads(t, pool)
			})
			var halted *processor.HaltError
			require.ErrorAs(t, p.Drain(t.Context()), &halted)
			require.Contains(t, halted.Failure.Error, "[…]")
			for _, text := range []string{halted.Error(), row(t, pool).Failure.Error} {
				require.NotContains(t, text, "CANARY")
				require.NotContains(t, text, "4711471147")
			}
			require.False(t, log.has("CANARY"))
			require.False(t, log.has("4711471147"))
		})
	}
}

func payloads(t testing.TB, pool *pgxpool.Pool) *table.Source {
	t.Helper()
	return sourceOf(t, pool, table.Config{Table: "dispatch.bookings", Columns: table.Columns{Payload: "payload"}})
}
