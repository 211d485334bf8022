package throwaway

import (
	"context"
	"fmt"
	"io"
	"os/exec"
)

// guardScript waits for the end of its standard input, ends the programs named in pids/ and removes the directory.
// SIGQUIT is PostgreSQL's immediate shutdown: the data is going away, so a checkpoint would be wasted. It kills a
// program that is still there after ten seconds. It tries the removal again, because a program that was being started
// may still be writing.
const guardScript = `
trap '' HUP INT QUIT TERM
dir=$1
cd /
send() {
	alive=1
	for f in "$dir"/pids/*; do
		kill "-$1" "${f##*/}" 2>/dev/null && alive=0
	done
	return $alive
}
while read -r _; do :; done
send QUIT
n=0
while send 0 && [ $n -lt 200 ]; do sleep 0.05; n=$((n + 1)); done
send KILL
n=0
until rm -rf "$dir" 2>/dev/null || [ $n -ge 20 ]; do sleep 0.1; n=$((n + 1)); done
`

// guard is the shell that cleans up when its pipe closes, because we close it or because this process is gone.
type guard struct {
	cmd  *exec.Cmd
	pipe io.Closer
}

func (d *Dir) startGuard() (*guard, error) {
	cmd := d.Command(context.Background(), "sh", "-c", guardScript, "throwaway-guard", d.path)
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the guard of %s: %w", d.path, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the guard of %s: %w", d.path, err)
	}
	return &guard{cmd: cmd, pipe: pipe}, nil
}

// release lets the guard do its work and waits for it. It ignores the exit status: it only counts that the directory
// is gone, and the caller checks that.
func (g *guard) release(ctx context.Context) error {
	if err := g.pipe.Close(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = g.cmd.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
