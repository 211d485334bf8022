package desk

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

func TestLetterOf_TheMarkOfAnAmendmentIsNoHeader(t *testing.T) {
	t.Parallel()
	_, config := fixture(t, plain)
	d := sit(t, config)
	l := d.letterOf(cursor.DeadLetter{Process: "a", RecordID: "1", Headers: map[string]string{cursor.HeaderAmended: "true", "tenant": "x"}, Payload: []byte("{}")}, Full)
	require.Equal(t, map[string]string{"tenant": "x"}, l.Record.Headers)
	require.True(t, l.Amended)
	require.Equal(t, "{}", l.Record.Payload)
	require.EqualValues(t, 2, l.Record.PayloadBytes)
}
