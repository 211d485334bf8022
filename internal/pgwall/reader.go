package pgwall

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const headerSize = 5 // a message begins with its kind and its length

// The kinds of messages that the reader examines.
const (
	dataRow         = 'D'
	parameterStatus = 'S'
	readyForQuery   = 'Z'
)

// reader passes on the messages of a server until they are more than the driver may keep.
type reader struct {
	from       io.Reader
	maxRows    int
	loggedIn   bool
	said       int // bytes before the login; after it, bytes of rows in this answer
	parameters map[string]struct{}
	err        error // why the reader reads no more

	header []byte // the part that has come
	left   int    // bytes that are left of the message
	name   []byte // the part of the parameter's name that has come
	naming bool
}

// Read never passes on the beginning of a refused message, so the driver reserves no memory for it.
func (r *reader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	n, err := r.from.Read(p)
	for at := 0; at < n; {
		if r.left == 0 && len(r.header) == 0 && n-at >= headerSize { // most messages
			r.err = r.begin(p[at], int(binary.BigEndian.Uint32(p[at+1:])))
			if r.err == nil {
				at += headerSize
				continue
			}
			return at, r.err
		}
		size := r.take(p[at:n])
		if r.err != nil {
			return at, r.err
		}
		at += size
	}
	return n, err
}

// take examines the next part of a message, and returns its size.
func (r *reader) take(p []byte) (size int) {
	if r.left > 0 {
		size = min(r.left, len(p))
		r.left -= size
		r.learn(p[:size])
		return size
	}
	size = min(headerSize-len(r.header), len(p))
	r.header = append(r.header, p[:size]...)
	if len(r.header) == headerSize {
		r.err = r.begin(r.header[0], int(binary.BigEndian.Uint32(r.header[1:])))
		r.header = r.header[:0]
	}
	return size
}

// begin judges a message by its header. The length includes itself.
func (r *reader) begin(kind byte, length int) error {
	r.left, r.name, r.naming = length-4, r.name[:0], kind == parameterStatus
	switch {
	case length < 4:
		return errors.New("the answer does not come from PostgreSQL")
	case !r.loggedIn:
		r.said += headerSize + r.left
	case kind == dataRow && r.maxRows > 0:
		r.said += headerSize + r.left
	}
	if kind == readyForQuery {
		r.loggedIn, r.said = true, 0
		return nil
	}
	switch {
	case !r.loggedIn && r.said > maxLogin:
		return fmt.Errorf("the server sent more than %d bytes before the login: is it PostgreSQL?", maxLogin)
	case r.loggedIn && r.maxRows > 0 && r.said > r.maxRows:
		return fmt.Errorf("the server answered with more than %d bytes of rows: is it PostgreSQL?", r.maxRows)
	case kind == parameterStatus && length > maxParameter:
		return fmt.Errorf("the server reported a parameter of more than %d bytes: is it PostgreSQL?", maxParameter)
	}
	return nil
}

// learn counts the names of parameters: the driver keeps one value of each.
func (r *reader) learn(part []byte) {
	for _, b := range part {
		if !r.naming {
			return
		}
		if b != 0 {
			r.name = append(r.name, b)
			continue
		}
		r.naming = false
		r.parameters[string(r.name)] = struct{}{}
		if len(r.parameters) > maxParameters {
			r.err = fmt.Errorf("the server reported more than %d different parameters: is it PostgreSQL?", maxParameters)
		}
	}
}
