package exec

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/child"
)

// run is one run of the command.
type run struct {
	*child.Process
	answers chan []byte // lines of standard output; closed after the last one
	words   *words      // of standard error
	cause   error       // why answers was closed early; read it after the last answer
}

// maxAnswer bounds one answer, in bytes.
const maxAnswer = 64 << 10

// start runs the command. From now on its output is read, whatever is written to it.
func start(p child.Program, window int, w *words) (*run, error) {
	process, err := p.Start()
	if err != nil {
		return nil, err
	}
	k := &run{Process: process, answers: make(chan []byte, window), words: w}
	go k.read()
	go w.read(process.Stderr)
	go w.log()
	return k, nil
}

// read passes on the lines of standard output. It stops at the end, at a line that is too long to be an answer, or at
// more lines than were asked for.
func (k *run) read() {
	defer k.Stdout.Close()
	defer close(k.answers)
	lines := bufio.NewScanner(k.Stdout)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		line := append([]byte(nil), lines.Bytes()...)
		select {
		case k.answers <- line:
		case <-k.Ended():
			select {
			case k.answers <- line:
			default:
				return
			}
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		k.cause = fmt.Errorf("it wrote a line of more than %d bytes", maxAnswer)
	}
}

// grace gives a child that ends by itself time to do so: its exit status gives the reason.
func (k *run) grace(err error) {
	if err != errEnded {
		return
	}
	select {
	case <-k.Ended():
	case <-time.After(child.ExitTimeout):
	}
}

// end kills the child and returns how it ended.
func (k *run) end() string {
	state := k.End()
	if state == nil {
		return "it does not end"
	}
	k.words.await()
	return state.String()
}

// stop asks the child to end, and kills it after the grace.
func (k *run) stop(grace time.Duration) {
	_ = k.Stdin.Close()
	k.Ask()
	select {
	case <-k.Ended():
	case <-time.After(grace):
	}
	k.end()
}

// errGone: the child ended before it took a line.
var errGone = errors.New("it has ended")

// send writes a line. It ends when the child does, or Kill is called.
func (k *run) send(line []byte, timeout time.Duration) error {
	err := k.Stdin.SetWriteDeadline(time.Now().Add(timeout))
	if err == nil {
		_, err = k.Stdin.Write(line)
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("it has not read the line within %v", timeout)
	case errors.Is(err, os.ErrClosed):
		return errGone
	default:
		return err
	}
}

// next returns the next line of standard output.
func (k *run) next(ctx context.Context) ([]byte, error) {
	select {
	case line, ok := <-k.answers:
		return k.line(line, ok)
	default:
	}
	select {
	case line, ok := <-k.answers:
		return k.line(line, ok)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (k *run) line(line []byte, ok bool) ([]byte, error) {
	switch {
	case ok:
		return line, nil
	case k.cause != nil:
		return nil, k.cause
	default:
		return nil, errEnded
	}
}

// errEnded: standard output has ended.
var errEnded = errors.New("the child ended without an answer")
