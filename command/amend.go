package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
)

type amendCommand struct {
	decision
	needReason
	Payload string  `xor:"what" required:"" placeholder:"FILE" help:"File with the payload to deliver instead of that of the row; - is standard input. White space at its ends does not count."`
	Clear   bool    `xor:"what" required:"" help:"Take an amendment back: the record is delivered as its row is."`
	At      *string `placeholder:"POSITION" help:"With --clear: the record at this position, detail.record_position of the amend in history --json. Default: the failing record."`
}

// Run is called by kong.
func (c *amendCommand) Run(ctx context.Context, sys system) error {
	if c.Clear {
		return c.run(ctx, sys, c.needReason, func(o *daemon.Operator, ctx context.Context, d cursor.Decision) (daemon.Outcome, error) {
			at := cursor.Position("")
			if c.At != nil {
				at = cursor.Position(*c.At)
			}
			return o.Unamend(ctx, at, d)
		})
	}
	path, _ := c.path(sys)
	switch {
	case c.At != nil:
		return &daemon.UsageError{Err: errors.New("--at goes with --clear: only the failing record can be amended")}
	case path == "":
		return &daemon.UsageError{Err: fmt.Errorf("amend reads the record by the configuration of its process: name the file with -c%s", looked())}
	case c.Config == "-" && c.Payload == "-":
		return &daemon.UsageError{Err: errors.New("-c and --payload cannot both be standard input: give one of them as a file")}
	}
	return c.run(ctx, sys, c.needReason, func(o *daemon.Operator, ctx context.Context, d cursor.Decision) (daemon.Outcome, error) {
		payload, err := c.payload(sys.stdin, o.MaxPayload())
		if err != nil {
			return daemon.Outcome{}, err
		}
		return o.Amend(ctx, payload, d)
	})
}

// payload reads the new payload, of at most limit bytes.
func (c *amendCommand) payload(from io.Reader, limit int) ([]byte, error) {
	if c.Payload != "-" {
		file, err := os.Open(c.Payload)
		if err != nil {
			return nil, &daemon.UsageError{Err: fmt.Errorf("read the payload: %w", err)}
		}
		defer file.Close()
		from = file
	}
	payload, err := io.ReadAll(io.LimitReader(from, int64(limit)+1))
	if err == nil && len(payload) > limit {
		err = fmt.Errorf("it has more than %d bytes, which is the source's max_record_bytes", limit)
	}
	if payload = bytes.TrimSpace(payload); err == nil && len(payload) == 0 {
		err = errors.New("it is empty")
	}
	if err != nil {
		return nil, &daemon.UsageError{Err: fmt.Errorf("read the payload: %w", err)}
	}
	return payload, nil
}
