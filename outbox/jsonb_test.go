package outbox

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// The server refuses what jsonbBytes refuses, and prints no more bytes than it promises.
func TestJsonbBytes_IsWhatTheServerPrintsAtMost(t *testing.T) {
	t.Parallel()
	pool := pgtest.Database(t)
	for _, text := range []string{
		`null`, `true`, `"a"`, `""`, `[]`, `{}`, ` [ 1 , 2 ] `, `[1,2,[3,{"a":[4,5]}]]`, `{"b":1,"a":{"c":"d","e":null}}`, "{\n\t\"a\":\r[]}",
		`"é表<>&'/"`, `"\""`, `"\\\/\b\f\n\r\t"`, `"\u0001\u001f\u007f\u0022\u005c\u003c\u00e9\u8868\u2028\ufffd\uffff"`, `"\ud83d\ude00\uD83D\uDE00"`, `{"\u0061":"\u0001"}`,
		`"\\u0000"`, `"\\\\ud800"`, `"\u0000"`, `"\\\u0000"`, `{"\u0000":1}`, `{"a":["b","c\u0000"]}`,
		`"\ud800"`, `"\ud800a"`, `"\ud800\n"`, `"\ud800\u0061"`, `"\udc00"`, `"\udc00\ud800"`, `"\ud800\ud800\udc00"`, `"\ud83d\ude00\ude00"`,
		`0`, `-0`, `-1.50`, `12345678901234567890.120`, `1e5`, `1E+5`, `1.25e1`, `1e-5`, `-1.5e-7`, `0e9999`, `0.000e3`, `123.456e2`,
		`1e131071`, `1e131072`, `-1e131071`, `0.001e131074`, `0.001e131075`, `12e131070`, `12e131071`, `1e-16383`, `1e-16384`, `1.5e-16382`, `1.5e-16383`,
		`0e-20000`, `1e200000`, `1e-200000`, `1e99999999999999999999`, `1e-99999999999999999999`, `[1e1000,1e1000]`,
		strings.Repeat("9", 131_072), strings.Repeat("9", 131_073), "0." + strings.Repeat("9", 16_383), "0." + strings.Repeat("9", 16_384),
	} {
		name := text[:min(len(text), 60)]
		size, err := jsonbBytes([]byte(text))
		var printed int
		refused := pool.QueryRow(t.Context(), "SELECT octet_length($1::text::jsonb::text)", text).Scan(&printed)
		if refused != nil {
			var code *pgconn.PgError
			require.ErrorAs(t, refused, &code, name)
			require.Equal(t, "22", code.Code[:2], "%s: a fault of the data: %v", name, refused)
			require.Error(t, err, "%s: the server refuses it: %v", name, refused)
			continue
		}
		require.NoError(t, err, name)
		require.LessOrEqual(t, printed, size, name)
		require.LessOrEqual(t, size, printed+printed/2+8, "%s: not far more than it is", name)
	}
}
