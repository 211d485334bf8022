package daemon

import (
	"fmt"
	"io"
	"log"
	"log/slog"
	"strings"
	"time"

	"github.com/lmittmann/tint"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// NewLogger returns a logger for people if w is a terminal, and else one that writes JSON lines.
func NewLogger(w io.Writer, level slog.Level) *slog.Logger {
	if visible.IsTerminal(w) {
		return NewTextLogger(w, level)
	}
	return slog.New(slog.NewJSONHandler(visible.JSON(w), &slog.HandlerOptions{Level: level, ReplaceAttr: readable}))
}

// NewTextLogger returns a logger for people.
func NewTextLogger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, ReplaceAttr: shown}))
}

// Adopt logs the lines that libraries print by themselves. For example, net/http prints bytes that a receiver sends
// unasked. Adopt leaves out the text that they quote: it comes from others, and may contain a secret.
func Adopt(logger *slog.Logger) {
	log.SetFlags(0)
	log.SetOutput(adopted{logger})
}

type adopted struct{ logger *slog.Logger }

// Write takes one line of the standard logger.
func (a adopted) Write(line []byte) (int, error) {
	text := quotation.ReplaceAllString(strings.TrimRight(string(line), "\n"), "…")
	a.logger.Warn("a library wrote to the log", "text", text)
	return len(line), nil
}

// readable writes durations with their unit, not as nanoseconds.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.String(a.Key, a.Value.Duration().String())
	}
	return a
}

// escapes are the sequences that tint would pass on to the terminal. It lets colours through, and it turns the four
// characters \x1b of a quoted text into the one.
var escapes = strings.NewReplacer("\x1b", `\u001b`, `\x1b`, `\u001b`)

// shown removes all from an attribute or a message that could move a terminal's cursor. tint quotes the other hidden
// characters of an attribute.
func shown(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.MessageKey {
		return slog.String(a.Key, visible.Inline(a.Value.String()))
	}
	switch value := a.Value.Any().(type) {
	case string:
		a.Value = slog.StringValue(escapes.Replace(value))
	case nil, time.Time, time.Duration, slog.Level, bool, int64, uint64, float64:
	default:
		a.Value = slog.StringValue(escapes.Replace(fmt.Sprintf("%+v", value)))
	}
	return a
}
