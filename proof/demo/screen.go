package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// screen is what people read: lines that stay, and below them, on a terminal, one that is kept up to date. It is safe
// for concurrent use.
type screen struct {
	terminal bool
	fail     func(error) // told when nobody reads any longer

	mu     sync.Mutex
	out    io.Writer
	status bool // the last line is a status
}

func newScreen(out io.Writer, fail func(error)) *screen {
	return &screen{terminal: isTerminal(out), fail: fail, out: out}
}

// isTerminal takes the null device for one, which harms nobody.
func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

const (
	clearLine = "\r\x1b[K"
	maxStatus = 79 // columns: a line that wraps cannot be brought up to date

	liveInterval  = 100 * time.Millisecond // between two states of the line on a terminal
	plainInterval = time.Second            // between two lines elsewhere
)

// interval is how often show is worth calling.
func (s *screen) interval() time.Duration {
	if s.terminal {
		return liveInterval
	}
	return plainInterval
}

// say prints a line that stays.
func (s *screen) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear := ""
	if s.status {
		clear = clearLine
	}
	s.status = false
	s.print(clear + fmt.Sprintf(format, args...) + "\n")
}

// show brings the status line up to date.
func (s *screen) show(status string) {
	if !s.terminal {
		s.say("%s", status)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = true
	s.print(clearLine + status[:min(maxStatus, len(status))])
}

// end leaves the last status standing: what others print comes below it.
func (s *screen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status {
		s.status = false
		s.print("\n")
	}
}

func (s *screen) print(text string) {
	if _, err := io.WriteString(s.out, text); err != nil {
		s.fail(fmt.Errorf("print: %w", err))
	}
}

// screenLog shows what the starting of PostgreSQL logs, as text.
type screenLog struct{ screen *screen }

func (l screenLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (l screenLog) Handle(_ context.Context, r slog.Record) error {
	var line strings.Builder
	line.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&line, " %s=%v", a.Key, a.Value)
		return true
	})
	l.screen.part("", "%s", line.String())
	return nil
}

func (l screenLog) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l screenLog) WithGroup(string) slog.Handler      { return l }

// short prints a duration to what people care for.
func short(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1000)
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	default:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
}
