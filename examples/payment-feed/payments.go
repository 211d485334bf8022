package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// paymentProcessor is the receiver, a program in Python.
type paymentProcessor struct {
	python     string // the interpreter
	repository string // where the package ordered_inbox is, as long as it is not installed
}

// start starts the program, and returns the address that it prints. It ends when its standard input does, and so with
// this program.
func (p paymentProcessor) start(ctx context.Context, database, secret string) (url string, end func(), err error) {
	command := exec.CommandContext(ctx, p.python, filepath.Join(p.repository, "examples", "payment-feed", "receiver.py"))
	command.Env = append(os.Environ(), "DATABASE_URL="+database, "SECRET="+secret, "PYTHONDONTWRITEBYTECODE=1",
		"PYTHONPATH="+filepath.Join(p.repository, "receivers", "python", "src"))
	var log bytes.Buffer // where the receiver reports what it does not apply
	command.Stderr = &log
	input, err := command.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := command.Start(); err != nil {
		return "", nil, err
	}
	end = func() {
		_ = input.Close()
		_ = command.Wait()
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		end()
		return "", nil, fmt.Errorf("start the receiver: %w\n%s", err, log.String())
	}
	return strings.TrimSpace(line), end, nil
}

// findPython returns an interpreter that has psycopg, the driver for PostgreSQL.
func findPython(ctx context.Context) (string, error) {
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(ctx, name, "-c", "import psycopg").Run() == nil {
			return name, nil
		}
	}
	return "", errors.New("it needs Python with psycopg 3: pip install \"psycopg[binary]\", or on Debian apt-get install python3-psycopg")
}
