package throwaway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Process is a program that runs until it is stopped, it ends by itself, or its Dir goes away.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // set before done is closed
}

// Start starts a program in the directory. What it prints is appended to the file log there.
func (d *Dir) Start(log, name string, args ...string) (*Process, error) {
	out, err := d.appendTo(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()

	cmd := d.Command(context.Background(), name, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	entry := d.Path("pids", strconv.Itoa(cmd.Process.Pid))
	if err := os.WriteFile(entry, nil, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("record %s with the guard: %w", name, err), cmd.Process.Kill(), cmd.Wait())
	}
	go p.await(entry)
	return p, nil
}

func (d *Dir) appendTo(log string) (*os.File, error) {
	return os.OpenFile(d.Path(log), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

// await reaps the program and takes it off the guard's list: its process id may be someone else's from now on.
func (p *Process) await(entry string) {
	p.err = p.cmd.Wait()
	_ = os.Remove(entry)
	close(p.done)
}

// Pid is the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the program ended: nil for exit status 0. It is meant for after Done.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Signal sends sig. One that has ended is os.ErrProcessDone.
func (p *Process) Signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// Stop sends sig and waits for the end. When ctx ends first, the program is killed and ctx's cause returned. A
// program that has ended already is left alone.
func (p *Process) Stop(ctx context.Context, sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop process %d: %w", p.Pid(), err)
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	}
	_ = p.cmd.Process.Kill()
	<-p.done
	return fmt.Errorf("stop process %d: killed after waiting in vain: %w", p.Pid(), context.Cause(ctx))
}

// Tail returns the last lines of a file of the directory, for error messages; "" if it cannot be read.
func (d *Dir) Tail(name string, lines int) string {
	content, err := os.ReadFile(d.Path(name))
	if err != nil {
		return ""
	}
	all := strings.Split(string(bytes.TrimSpace(content)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
