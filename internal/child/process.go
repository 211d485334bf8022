package child

import (
	"os"
	"os/exec"
	"time"
)

// Process is one run of a program.
type Process struct {
	// Stdin, Stdout and Stderr are our ends of its pipes. Read the outputs to their ends, and close them.
	Stdin, Stdout, Stderr *os.File

	cmd   *exec.Cmd
	ended chan struct{}
}

const (
	// ExitTimeout is how long the output of a process is read after its end, and how long a process that closed its
	// output may take to end.
	ExitTimeout = time.Second
	// endTimeout bounds the wait for a killed process, which ends at once unless the system is stuck.
	endTimeout = 5 * time.Second
)

// Start starts a program.
func (p Program) Start() (*Process, error) {
	var ours, theirs [3]*os.File
	var err error
	defer func() { closeAll(theirs) }()
	for i := range ours {
		if ours[i], theirs[i], err = pipe(i == 0); err != nil {
			closeAll(ours)
			return nil, err
		}
	}
	cmd := exec.Command(p.Command[0], p.Command[1:]...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = p.Dir, p.environment(), ownGroup(p.Account)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	p.Account.give(theirs)
	if err := cmd.Start(); err != nil {
		closeAll(ours)
		return nil, err
	}
	started := &Process{Stdin: ours[0], Stdout: ours[1], Stderr: ours[2], cmd: cmd, ended: make(chan struct{})}
	go started.wait()
	return started, nil
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
func (p *Process) wait() {
	_ = p.cmd.Wait() // ProcessState has it
	killGroup(p.cmd.Process)
	_ = p.Stdin.Close() // a write to a pipe that is held open and not read would never end
	soon := time.Now().Add(ExitTimeout)
	for _, output := range []*os.File{p.Stdout, p.Stderr} {
		_ = output.SetReadDeadline(soon) // the child's output is in the pipe
	}
	close(p.ended)
}

// Ended is closed when the process has ended, and its group was killed.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Running reports whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Ask asks the process and its group to end.
func (p *Process) Ask() {
	if p.Running() {
		askGroup(p.cmd.Process)
	}
}

// Kill ends the process and its group at once, and with them every read and write of its pipes.
func (p *Process) Kill() {
	if p.Running() {
		killGroup(p.cmd.Process)
	}
	_ = p.Stdin.Close()
}

// End kills the process and waits until it has ended. It returns nil if the system does not end it in time.
func (p *Process) End() *os.ProcessState {
	p.Kill()
	select {
	case <-p.ended:
		return p.cmd.ProcessState
	case <-time.After(endTimeout):
		return nil
	}
}
