package throwaway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"
)

// Process is a program that runs until it is stopped, it ends by itself, or its Dir is closed.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // set before done is closed
}

// Start starts a program in the directory. The program's output is appended to the file log there. When Start
// returns, the guard knows the program, so that Close ends it.
func (d *Dir) Start(log, name string, args ...string) (*Process, error) {
	program, err := lookPath(name)
	if err != nil {
		return nil, err
	}
	cmd := d.Command(context.Background(), "sh", append([]string{"-c", startScript, "sh", d.Path(log), program}, args...)...)
	if err := startNoted(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	go p.await(d)
	return p, nil
}

// startNoted waits until the script has noted its process id, or has ended.
func startNoted(cmd *exec.Cmd) error {
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	cmd.ExtraFiles = []*os.File{write}
	err = cmd.Start()
	_ = write.Close() // else we would wait for a program that ends early
	if err != nil {
		return err
	}
	_, _ = read.Read(make([]byte, 1)) // the end of the file is the end of the script, which Err explains
	return nil
}

// await reaps the program.
func (p *Process) await(d *Dir) {
	p.err = p.cmd.Wait()
	d.unlist(p.Pid())
	close(p.done)
}

// Pid returns the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns how the program ended: nil for exit status 0. Call it after Done.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// AwaitListener waits until the program, which has just been started, accepts connections at addr.
func (p *Process) AwaitListener(ctx context.Context, addr string) error {
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-poll.C:
		case <-p.done:
			return fmt.Errorf("the program ended while starting: %w", p.err)
		case <-ctx.Done():
			return fmt.Errorf("the program does not accept connections at %s: %w", addr, context.Cause(ctx))
		}
	}
}

// Signal sends sig. It returns os.ErrProcessDone if the program has ended.
func (p *Process) Signal(sig os.Signal) error { return p.cmd.Process.Signal(sig) }

// Stop sends sig and waits for the end. If ctx ends first, Stop kills the program and returns ctx's cause. It does
// nothing to a program that has ended already.
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
