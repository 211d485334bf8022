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

// NewLogger returns a logger for people on a terminal, and one of JSON lines for
// everything else.
func NewLogger(w io.Writer, level slog.Level) *slog.Logger {
	if visible.IsTerminal(w) {
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, ReplaceAttr: shown}))
	}
	return slog.New(slog.NewJSONHandler(visible.JSON(w), &slog.HandlerOptions{Level: level, ReplaceAttr: readable}))
}

// Adopt makes lines of the logger out of what libraries print by themselves:
// net/http what a receiver sends without being asked. What they quote is left out:
// it is somebody else's, and may hold a secret.
func Adopt(logger *slog.Logger) {
	log.SetFlags(0)
	log.SetOutput(adopted{logger})
}

type adopted struct{ logger *slog.Logger }

// Write takes one line of the standard logger.
func (a adopted) Write(line []byte) (int, error) {
	text := quotation.ReplaceAllString(strings.TrimRight(string(line), "\n"), "…")
	a.logger.Warn("said by a library", "text", text)
	return len(line), nil
}

// readable spells durations with their unit, not as nanoseconds.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		return slog.String(a.Key, a.Value.Duration().String())
	}
	return a
}

// escapes are those that tint would pass on to the terminal: it lets colours through,
// and takes the four characters \x1b of a quoted text for the one.
var escapes = strings.NewReplacer("\x1b", `\u001b`, `\x1b`, `\u001b`)

// shown leaves nothing in an attribute or a message that moves a terminal's cursor.
// What else is hidden in an attribute, tint quotes.
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
