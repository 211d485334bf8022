package webhook

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/wire"
)

// The attributes of a record's event, CloudEvents 1.0.2.
func eventSource(d processor.Delivery) string { return "/" + url.PathEscape(d.Table) }

func eventType(d processor.Delivery) string {
	for _, name := range []string{d.Type, d.Table} {
		if strings.TrimSpace(name) != "" {
			return name
		}
	}
	return "record"
}

// eventTime is "" for a time that RFC 3339 cannot express, which ends with the year 9999. PostgreSQL has later years.
func eventTime(d processor.Delivery) string {
	at := d.CreatedAt.UTC()
	if d.CreatedAt.IsZero() || at.Year() < 0 || at.Year() > 9999 {
		return ""
	}
	return at.Format(time.RFC3339Nano)
}

// event is the structured mode in the JSON format 1.0.2, section 3.1.
type event struct {
	SpecVersion     string `json:"specversion"`
	ID              string `json:"id"`
	Source          string `json:"source"`
	Type            string `json:"type"`
	Time            string `json:"time,omitempty"`
	DataContentType string `json:"datacontenttype,omitempty"`
}

const structuredType = "application/cloudevents+json; charset=utf-8"

// envelope returns the body of a request, and its type.
func (f Format) envelope(d processor.Delivery) (body []byte, contentType string) {
	if f == CloudEventsStructured {
		return structured(d), structuredType
	}
	return d.Payload, wire.ContentType
}

// structured returns the body of a record's event. It puts in the payload's bytes as they are, since a JSON encoder
// would change them, and copies them once.
func structured(d processor.Delivery) []byte {
	e := event{
		SpecVersion: "1.0",
		ID:          identity(d),
		Source:      eventSource(d),
		Type:        eventText(eventType(d)),
		Time:        eventTime(d),
	}
	isJSON := json.Valid(d.Payload) && utf8.Valid(d.Payload)
	if isJSON {
		e.DataContentType = "application/json"
	}
	body, _ := json.Marshal(e) // of strings: never fails
	if len(d.Payload) == 0 {
		return body
	}
	body = body[:len(body)-len("}")]
	const name, encodedName = `,"data":`, `,"data_base64":"`
	if isJSON {
		whole := append(make([]byte, 0, len(body)+len(name)+len(d.Payload)+len("}")), body...)
		return append(append(append(whole, name...), d.Payload...), '}')
	}
	size := base64.StdEncoding.EncodedLen(len(d.Payload))
	whole := append(make([]byte, 0, len(body)+len(encodedName)+size+len(`"}`)), body...)
	return append(base64.StdEncoding.AppendEncode(append(whole, encodedName...), d.Payload), `"}`...)
}

// eventText makes a value fit for an attribute: it percent-encodes, as in a header, the characters that the type
// String forbids (section "Type system").
func eventText(value string) string {
	forbidden := func(r rune) bool {
		return unicode.IsControl(r) || r == utf8.RuneError || r&0xFFFE == 0xFFFE || r >= 0xFDD0 && r <= 0xFDEF
	}
	if strings.ContainsFunc(value, forbidden) {
		return escape(value)
	}
	return value
}
