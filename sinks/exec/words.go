package exec

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// words collects the lines that a child writes to standard error. The last lines are for errors. All lines, within
// bounds, are for the log. Taking the records out of them costs time, so the child and the delivery never wait for
// that.
type words struct {
	config  Config
	secrets *redactor
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
	maxWordBytes = 1 << 10 // of a line
	lastWords    = 5       // lines that an error has
	maxPerSecond = 100     // lines that are logged
	maxTogether  = 4 << 10 // bytes of lines that are compared with the records at a time
	idleShare    = 4       // how much longer than it works the log rests
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
	case <-time.After(exitTimeout):
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

// read takes lines until the end. It keeps only the beginning of a long line.
func (w *words) read(stderr *os.File) {
	defer close(w.over)
	defer stderr.Close()
	reader := bufio.NewReaderSize(stderr, maxWordBytes)
	for {
		line, more, err := reader.ReadLine()
		if err != nil {
			return
		}
		w.note(string(line))
		for more && err == nil {
			_, more, err = reader.ReadLine()
		}
	}
}

// note keeps a line for errors, and for the log unless there are too many.
func (w *words) note(line string) {
	if w.config.HideAnswers {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.last
	w.last = recent(append(w.last, line))
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
			for soon := time.Now().Add(exitTimeout); w.flush() && time.Now().Before(soon); {
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

// recent returns the last lines of some: those with which a secret in the next line may begin, and those for an error.
func recent(lines []string) []string {
	for size, i := 0, len(lines)-1; i >= 0; i-- {
		if size += len(lines[i]) + 1; size > maxTogether && len(lines)-i > lastWords {
			return slices.Clone(lines[i+1:])
		}
	}
	return lines
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
		for _, line := range w.clean(w.secrets.next(w.before, lines), about) {
			w.config.Logger.Info("the child's standard error", "process", w.process, "line", line)
		}
		w.before = recent(append(w.before, lines...))
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
		if size += len(next.line); n > 0 && (size > maxTogether || next.before != nil) {
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

// separator separates lines. It is longer than any text between two words that are shown as one.
const separator = "\n\n\n\n"

// clean takes the records and the secrets out of lines that have no folded secret. It handles the lines together, so that
// each record is read only once. The text that is taken out may have been escaped, and the text that is unescaped is
// made printable again.
func (w *words) clean(lines []string, about beside) []string {
	clean := make([]string, len(lines))
	for i, line := range lines {
		clean[i] = w.secrets.Line(line)
	}
	clean = strings.Split(about.redact(strings.Join(clean, separator)), separator)
	for i, line := range clean {
		clean[i] = w.secrets.Line(line)
	}
	return clean
}

// tail returns the last lines, for an error; "" if there are none.
func (w *words) tail() string {
	w.mu.Lock()
	lines, about := slices.Clone(w.last), besides(w.records)
	w.mu.Unlock()
	if len(lines) == 0 {
		return ""
	}
	lines = w.secrets.next(nil, lines)
	lines = lines[max(0, len(lines)-lastWords):]
	return "; its last words: " + visible.Start(strings.Join(w.clean(lines, about), " | "), maxErrorText)
}
