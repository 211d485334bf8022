package exec

import (
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/child"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// words collects the lines that a child writes to standard error. The last lines are for errors. All lines, within
// bounds, are for the log. Taking the records out of them costs time, so the child and the delivery never wait for
// that.
type words struct {
	config  Config
	secrets *child.Redactor
	process string
	some    chan struct{} // has one when a line waits
	over    chan struct{} // closed when everything is read
	done    chan struct{} // closed when everything is logged
	before  []string      // the lines that come before the waiting ones

	mu      sync.Mutex
	records []processor.Delivery // that the child may repeat: the last ones it was given
	last    []string             // the lines up to now, as far as they are looked at
	waiting []waiting            // lines to be logged
	about   beside               // records that those may repeat
	second  time.Time            // the second that is counted
	noted   int                  // lines in it
	left    int                  // lines left out
	gap     bool                 // the last line was left out
}

// waiting is a line to be logged.
type waiting struct {
	line string
	// before are the lines before it, if some of them were left out: a secret may begin in those. nil: none was.
	before []string
}

const (
	maxPerSecond = 100 // lines that are logged
	idleShare    = 4   // how much longer than it works the log rests
)

func newWords(c Config, process string) *words {
	return &words{
		config: c, secrets: newRedactor(c), process: process,
		some: make(chan struct{}, 1), over: make(chan struct{}), done: make(chan struct{}),
	}
}

// await returns when everything is logged, or after a short time: a process that left the group may hold the pipe.
func (w *words) await() {
	select {
	case <-w.done:
	case <-time.After(child.ExitTimeout):
	}
}

// given notes a record that the child gets.
func (w *words) given(d processor.Delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.records = append(w.records, d)
	if n := len(w.records) - w.config.Window - 1; n > 0 {
		clear(w.records[:n])
		w.records = w.records[n:]
	}
	if len(w.waiting) > 0 {
		w.about.add(d)
	}
}

// read takes lines until the end.
func (w *words) read(stderr *os.File) {
	defer close(w.over)
	child.ReadLines(stderr, w.note)
}

// note keeps a line for errors, and for the log unless there are too many.
func (w *words) note(line string) {
	if w.config.HideAnswers {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.last
	w.last = child.Recent(append(w.last, line))
	if now := time.Now(); now.Sub(w.second) >= time.Second {
		w.second, w.noted = now, 0
	}
	if w.noted++; w.noted > maxPerSecond || len(w.waiting) >= maxPerSecond {
		w.left++
		w.gap = true
		return
	}
	if len(w.waiting) == 0 {
		w.about = besides(w.records)
	}
	next := waiting{line: line}
	if w.gap {
		next.before = slices.Clone(before)
	}
	w.waiting, w.gap = append(w.waiting, next), false
	select {
	case w.some <- struct{}{}:
	default:
	}
}

// log logs lines as they come. After each time it rests for longer than the logging took. At the end it logs as much
// of the rest as it can in a short time.
func (w *words) log() {
	defer close(w.done)
	for {
		select {
		case <-w.some:
		case <-w.over:
			for soon := time.Now().Add(child.ExitTimeout); w.flush() && time.Now().Before(soon); {
			}
			return
		}
		began := time.Now()
		if w.flush() {
			select {
			case w.some <- struct{}{}:
			default:
			}
		}
		select {
		case <-time.After(idleShare * time.Since(began)):
		case <-w.over:
		}
	}
}

// flush logs waiting lines, and reports whether there are more.
func (w *words) flush() (more bool) {
	lines, before, about, left, more := w.take()
	if left > 0 {
		w.config.Logger.Warn("the child's standard error has more lines than are logged", "process", w.process, "lines", left)
	}
	if before != nil {
		w.before = before
	}
	if len(lines) > 0 {
		for _, line := range w.secrets.Clean(w.secrets.Next(w.before, lines), about.redact) {
			w.config.Logger.Info("the child's standard error", "process", w.process, "line", line)
		}
		w.before = child.Recent(append(w.before, lines...))
	}
	return more
}

// take takes the first waiting lines, up to a gap, and the records that they may repeat. before are the lines before
// them if some of those were left out.
func (w *words) take() (lines, before []string, about beside, left int, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for size := 0; n < len(w.waiting); n++ {
		next := w.waiting[n]
		if size += len(next.line); n > 0 && (size > child.MaxTogether || next.before != nil) {
			break
		}
		if n == 0 {
			before = next.before
		}
		lines = append(lines, next.line)
	}
	w.waiting = w.waiting[n:]
	about, more = w.about.clone(), len(w.waiting) > 0
	if !more {
		w.waiting, w.about = nil, beside{}
	}
	if time.Since(w.second) >= time.Second || w.ended() {
		left, w.left = w.left, 0
	}
	return lines, before, about, left, more
}

func (w *words) ended() bool {
	select {
	case <-w.over:
		return true
	default:
		return false
	}
}

// tail returns the last lines, for an error; "" if there are none.
func (w *words) tail() string {
	w.mu.Lock()
	lines, about := slices.Clone(w.last), besides(w.records)
	w.mu.Unlock()
	return w.secrets.LastWords(lines, about.redact)
}
