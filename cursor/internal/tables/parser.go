package tables

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
)

// Parser reads the text values of a row and keeps the first error. NULL reads as zero.
type Parser struct {
	Values [][]byte
	Err    error
}

// Text returns a text.
func (p *Parser) Text(column int) string { return string(p.Values[column]) }

// True reports whether a boolean is true.
func (p *Parser) True(column int) bool { return p.Text(column) == "t" }

// Int returns a number.
func (p *Parser) Int(column int) int64 {
	if p.Values[column] == nil {
		return 0
	}
	n, err := strconv.ParseInt(string(p.Values[column]), 10, 64)
	if err != nil && p.Err == nil {
		p.Err = fmt.Errorf("parse column %d of the cursor: %w", column+1, err)
	}
	return n
}

// Time returns a time that the server sent as microseconds since 1970.
func (p *Parser) Time(column int) time.Time {
	if p.Values[column] == nil {
		return time.Time{}
	}
	return time.UnixMicro(p.Int(column)).UTC()
}

// Duration returns a duration that the server sent as microseconds.
func (p *Parser) Duration(column int) time.Duration {
	return time.Duration(p.Int(column)) * time.Microsecond
}

// Bytes returns the bytes that the server sent as hexadecimal digits, as of encode(value, 'hex').
func Bytes(digits []byte) ([]byte, error) {
	value := make([]byte, hex.DecodedLen(len(digits)))
	_, err := hex.Decode(value, digits)
	return value, err
}
