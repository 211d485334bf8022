package exec

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// child is one run of the command.
type child struct {
	cmd     *exec.Cmd
	stdin   *os.File
	answers chan []byte   // lines of standard output; closed after the last one
	ended   chan struct{} // closed when the process has ended, and its group was killed
	words   *words        // of standard error
	cause   error         // why answers was closed early; read it after the last answer
}

// maxAnswer bounds one answer, in bytes.
const maxAnswer = 64 << 10

// start runs the command. From now on its output is read, whatever is written to it.
func start(c Config, a *account, w *words) (*child, error) {
	var ours, theirs [3]*os.File
	var err error
	defer func() { closeAll(theirs) }()
	for i := range ours {
		if ours[i], theirs[i], err = pipe(i == 0); err != nil {
			closeAll(ours)
			return nil, err
		}
	}
	cmd := exec.Command(c.Command[0], c.Command[1:]...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = c.Dir, c.environment(a), ownGroup(a)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	a.give(theirs)
	if err := cmd.Start(); err != nil {
		closeAll(ours)
		return nil, err
	}
	k := &child{cmd: cmd, stdin: ours[0], answers: make(chan []byte, c.Window), ended: make(chan struct{}), words: w}
	go k.wait(ours)
	go k.read(ours[1])
	go w.read(ours[2])
	go w.log()
	return k, nil
}

// pipe returns our end and the child's.
func pipe(toChild bool) (ours, theirs *os.File, err error) {
	read, write, err := os.Pipe()
	if toChild {
		return write, read, err
	}
	return read, write, err
}

func closeAll(files [3]*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// wait kills the rest of the child's group, which may hold the pipes open. A process that left the group may hold
// them as well, for as long as it likes. It is not waited for.
func (k *child) wait(pipes [3]*os.File) {
	_ = k.cmd.Wait() // ProcessState has it
	killGroup(k.cmd.Process)
	_ = pipes[0].Close() // a write to a pipe that is held open and not read would never end
	soon := time.Now().Add(exitTimeout)
	for _, output := range pipes[1:] {
		_ = output.SetReadDeadline(soon) // the child's output is in the pipe
	}
	close(k.ended)
}

// read passes on the lines of standard output. It stops at the end, at a line that is too long to be an answer, or at
// more lines than were asked for.
func (k *child) read(stdout *os.File) {
	defer stdout.Close()
	defer close(k.answers)
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		line := append([]byte(nil), lines.Bytes()...)
		select {
		case k.answers <- line:
		case <-k.ended:
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

// kill ends the child and its group at once, and with them every read and write of its pipes.
func (k *child) kill() {
	select {
	case <-k.ended:
	default:
		killGroup(k.cmd.Process)
	}
	_ = k.stdin.Close()
}

// running reports whether the process has not ended.
func (k *child) running() bool {
	select {
	case <-k.ended:
		return false
	default:
		return true
	}
}

// endTimeout bounds the wait for a killed process, which ends at once unless the system is stuck.
const endTimeout = 5 * time.Second

// exitTimeout is how long a child that closed its output may take to end.
const exitTimeout = time.Second

// grace gives a child that ends by itself time to do so: its exit status gives the reason.
func (k *child) grace(err error) {
	if err != errEnded {
		return
	}
	select {
	case <-k.ended:
	case <-time.After(exitTimeout):
	}
}

// end kills the child and returns how it ended.
func (k *child) end() string {
	k.kill()
	select {
	case <-k.ended:
	case <-time.After(endTimeout):
		return "it does not end"
	}
	k.words.await()
	return k.cmd.ProcessState.String()
}

// stop asks the child to end, and kills it after the grace.
func (k *child) stop(grace time.Duration) {
	_ = k.stdin.Close()
	if k.running() {
		askGroup(k.cmd.Process)
	}
	select {
	case <-k.ended:
	case <-time.After(grace):
	}
	k.end()
}

// errGone: the child ended before it took a line.
var errGone = errors.New("it has ended")

// send writes a line. It ends when the child does, or kill is called.
func (k *child) send(line []byte, timeout time.Duration) error {
	err := k.stdin.SetWriteDeadline(time.Now().Add(timeout))
	if err == nil {
		_, err = k.stdin.Write(line)
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
func (k *child) next(ctx context.Context) ([]byte, error) {
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

func (k *child) line(line []byte, ok bool) ([]byte, error) {
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
