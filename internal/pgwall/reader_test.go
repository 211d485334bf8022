package pgwall

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func message(kind byte, body string) string {
	return string(kind) + string(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4))) + body
}

func parameter(name, value string) string {
	return message(parameterStatus, name+"\x00"+value+"\x00")
}

// numbered are parameters of different names.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(parameter(fmt.Sprintf("p%d", i), "v"))
	}
	return b.String()
}

const ready = "Z\x00\x00\x00\x05I"

var row = message(dataRow, strings.Repeat("x", 1000))

func TestReader_EndsWhatWouldExhaustTheMemory(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]string{
		"many messages before the login":        strings.Repeat(message('N', strings.Repeat("n", 1000)), 2000),
		"one parameter again before the login":  strings.Repeat(parameter("p", strings.Repeat("v", 1000)), 2000),
		"a long message before the login":       message('E', strings.Repeat("e", maxLogin)),
		"many parameters before the login":      numbered(maxParameters + 1),
		"a long parameter after it":             ready + parameter("p", strings.Repeat("v", maxParameter)),
		"many parameters after it":              ready + numbered(maxParameters+1),
		"many parameters over many answers":     strings.ReplaceAll(ready+numbered(maxParameters+1), "v\x00", "v\x00"+ready),
		"rows without an end":                   ready + strings.Repeat(row, 100),
		"a length that no message has":          ready + "D\x00\x00\x00\x03",
		"a size that takes all memory":          "E\xff\xff\xff\xff",
		"a row of a size that takes all memory": ready + "D\x7f\xff\xff\xff",
	} {
		for way, from := range map[string]io.Reader{"whole": strings.NewReader(said), "byte by byte": iotest.OneByteReader(strings.NewReader(said))} {
			r := &reader{from: from, maxRows: 10_000, parameters: map[string]struct{}{}}
			read, err := io.ReadAll(r)
			require.Error(t, err, name+", "+way)
			require.LessOrEqual(t, len(read), maxLogin, name)
			require.LessOrEqual(t, len(r.parameters), maxParameters+1, name)
			_, again := r.Read(make([]byte, 1))
			require.Equal(t, err, again, "it ends for good")
		}
	}
}

func TestReader_LetsASessionPass(t *testing.T) {
	t.Parallel()
	said := numbered(20) + ready +
		strings.Repeat(strings.Repeat(row, 9)+ready, 5) + // the rows of each answer are counted by themselves
		strings.Repeat(parameter("search_path", strings.Repeat("s", 1000)), 100) + // one value is kept
		message('E', strings.Repeat("e", 2*maxLogin)) + message('n', "") + ready
	for _, from := range []io.Reader{strings.NewReader(said), iotest.OneByteReader(strings.NewReader(said)), iotest.HalfReader(strings.NewReader(said))} {
		read, err := io.ReadAll(&reader{from: from, maxRows: 10_000, parameters: map[string]struct{}{}})
		require.NoError(t, err)
		require.True(t, bytes.Equal([]byte(said), read))
	}
}

func TestReader_LetsAnyRowsPassWithoutABound(t *testing.T) {
	t.Parallel()
	said := ready + strings.Repeat(row, 3000)
	read, err := io.ReadAll(&reader{from: strings.NewReader(said), parameters: map[string]struct{}{}})
	require.NoError(t, err)
	require.Len(t, read, len(said))
}
