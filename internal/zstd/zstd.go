// Package zstd compresses and decompresses payloads as a whole, for the producer and the dispatcher.
//
//	outbox ── Compress ──► row with Header: Name ── Decompress ──► sink
//
// Nouns: a payload is bytes in memory. Invariants: Decompress makes at most as many bytes as it may. Left out: streams
// and dictionaries.
package zstd

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// Name is the value of the header content-encoding for zstd, as HTTP has it.
const Name = "zstd"

// ErrTooLarge means that a payload would be larger than it may be.
var ErrTooLarge = errors.New("decompressed, it is too large")

var encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))

// Compress returns the compressed payload.
func Compress(payload []byte) []byte { return encoder.EncodeAll(payload, nil) }

// Decompress returns the payload, if that has at most limit bytes. An error quotes nothing of it.
func Decompress(compressed []byte, limit int) ([]byte, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(limit)))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	payload, err := decoder.DecodeAll(compressed, nil)
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded), errors.Is(err, zstd.ErrWindowSizeExceeded), err == nil && len(payload) > limit:
		return nil, ErrTooLarge
	case err != nil:
		return nil, fmt.Errorf("it is not zstd, or damaged: %w", err)
	default:
		return payload, nil
	}
}
