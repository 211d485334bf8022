package desk

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPattern_LeavesOutWhatDiffers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`the receiver rejected record 42 (422): "no room 7"`:                    `the receiver rejected record # (422): …`,
		`booking 3f2a1b4c-0000-4000-8000-1234567890ab is gone since 2026-11-28`: `booking # is gone since #`,
		`value 'x y' of feed at 0xdeadbeef01`:                                   `value … of feed at #`,
		`dead beef`:                                                             `dead beef`,
		`payment pi_3MghXd2eZvKYlo2C of cus_Na6dX7aXxi11N4 is gone`:             `payment # of # is gone`,
		`order17 of booking-9 and customer_3 at 2026-11-28T10:00:05.123Z`:       `# of # and # at #:#:#.#`,
		`record 404 is not a record after 12ms`:                                 `record # is not a record after #`,
		`read tcp 10.0.0.7:53412->[2001:db8::1]:443: reset`:                     `read tcp #.#.#.#:#->[#:db8::#]:#: reset`,
		`größe7 of Ärger99`:                                                     `# of #`,
		`{"status":422, "code": 409, "id": 17}`:                                 `{…:422, …: 409, …: #}`,
		`it isn't here […]`:                                                     `it isn't here …`,
		`a--1-b- -2_`:                                                           `a--#- -#`,
		`1`:                                                                     `#`,
		``:                                                                      ``,
	} {
		require.Equal(t, want, pattern(text))
	}
}

func TestPattern_KeepsWhatTellsCausesApart(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`post to https://example.com: answered 422 Unprocessable Entity`,
		`post to https://example.com: answered 409 Conflict`,
		`HTTP/1.1 503 Service Unavailable`, `HTTP/2 503`, `it needs HTTP/1.1`, `HTTP 500`,
		`status 404`, `status: 404`, `status=404`, `status code 404`, `http_status 404`, `statusCode=404`, `Exception (404) Reason`, `nats: code=400`,
		`ERROR: duplicate key (SQLSTATE 23505)`, `ERROR: bad text (SQLSTATE 22P02)`,
		`invalid byte sequence for utf8`, `not UTF-8`, `not utf-16`, `sha256 differs`, `SHA-512 differs`, `illegal base64`, `x509: unknown authority`,
		`no ipv4 for s3`, `md5 is not oauth2`, `field f1`, `int32 overflows`, `RS256`,
	} {
		require.Equal(t, text, pattern(text))
	}
}

func TestPattern_ErrorsOfOneCauseMakeFewGroups(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"order%d is gone", "order-%d is gone", "o%d is gone", "record %d is gone", "pi_%dMghX%dz is gone", "%dms", "at 10.0.0.7:%d"} {
		patterns := map[string]bool{}
		for i := range 10_000 {
			text := fmt.Sprintf(form, i)
			patterns[pattern(text)] = true
		}
		require.LessOrEqual(t, len(patterns), 11, form)
	}
}
