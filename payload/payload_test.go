package payload_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/zstd"
	"github.com/ordered-dispatcher/ordered-dispatcher/payload"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

const limit = 1 << 20

// away is a store that cannot be reached.
type away struct{ claim.Store }

func (away) Get(context.Context, string, int) ([]byte, error) {
	return nil, errors.New("no route to host")
}

// madeStore is a new store in a directory.
func madeStore(t *testing.T) claim.Dir {
	t.Helper()
	store := claim.Dir(t.TempDir())
	require.NoError(t, store.Create())
	return store
}

func TestChain_ResolvesThenDecompresses(t *testing.T) {
	t.Parallel()
	store := madeStore(t)
	text := bytes.Repeat([]byte("payload "), 1000)
	reference, err := claim.Put(t.Context(), store, zstd.Compress(text))
	require.NoError(t, err)
	headers := map[string]string{"claim-check": reference.Object, "content-encoding": "zstd", "tenant": "x"}
	row := processor.Record{Payload: reference.JSON(), Headers: headers}

	made, err := payload.Chain(payload.Resolve(store, limit), payload.Decompress(limit))(t.Context(), row)
	require.NoError(t, err)
	require.Equal(t, text, []byte(made.Payload))
	require.Equal(t, map[string]string{"tenant": "x"}, made.Headers)
	require.Len(t, headers, 3, "the row stays as it is")

	made, err = payload.Decompress(limit)(t.Context(), row)
	require.NoError(t, err)
	require.Equal(t, row, made, "a reference is passed on with the encoding of its object")
	plain := processor.Record{Payload: []byte("{}"), Headers: map[string]string{"tenant": "x"}}
	made, err = payload.Chain(payload.Resolve(store, limit), payload.Decompress(limit))(t.Context(), plain)
	require.NoError(t, err)
	require.Equal(t, plain, made)
}

func TestDecompress_ABombIsTheRecordsFailure(t *testing.T) {
	t.Parallel()
	one := zstd.Compress(make([]byte, limit))
	for name, bomb := range map[string][]byte{
		"one frame":       zstd.Compress(make([]byte, 64*limit)),
		"one byte more":   zstd.Compress(make([]byte, limit+1)),
		"several frames":  bytes.Repeat(one, 100),
		"a claim of size": {0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0},
	} {
		_, err := payload.Decompress(limit)(t.Context(), processor.Record{Payload: bomb, Headers: map[string]string{"content-encoding": "zstd"}})
		require.EqualError(t, err, "decompress its payload: decompressed, it is too large: it may have 1048576 bytes", name)
		require.True(t, processor.IsPermanent(err))
	}
	made, err := payload.Decompress(limit)(t.Context(), processor.Record{Payload: one, Headers: map[string]string{"content-encoding": "zstd"}})
	require.NoError(t, err)
	require.Len(t, made.Payload, limit)
}

func TestDecompress_WhatIsNotZstdIsTheRecordsFailure(t *testing.T) {
	t.Parallel()
	cut := zstd.Compress(bytes.Repeat([]byte("Smith4711 "), 100))
	for encoding, body := range map[string][]byte{"gzip": nil, "zstd": []byte(`{"name": "Smith4711"}`), "zstd ": cut[:len(cut)-3]} {
		if encoding == "zstd " {
			encoding = "zstd"
		}
		_, err := payload.Decompress(limit)(t.Context(), processor.Record{Payload: body, Headers: map[string]string{"content-encoding": encoding}})
		require.ErrorContains(t, err, "decompress its payload: ")
		require.True(t, processor.IsPermanent(err))
		require.NotContains(t, err.Error(), "Smith")
	}
}

func TestResolve_AnObjectThatIsWrongIsTheRecordsAndAStoreThatIsAwayIsNot(t *testing.T) {
	t.Parallel()
	store := madeStore(t)
	reference, err := claim.Put(t.Context(), store, []byte("payload"))
	require.NoError(t, err)
	row := processor.Record{Payload: reference.JSON(), Headers: map[string]string{"claim-check": reference.Object}}

	_, err = payload.Resolve(away{}, limit)(t.Context(), row)
	require.ErrorContains(t, err, "the store failed: no route to host")
	require.False(t, processor.IsPermanent(err))

	_, err = payload.Resolve(store, 6)(t.Context(), row)
	require.ErrorContains(t, err, "the object is too large: it has 7 bytes, and may have 6")
	require.True(t, processor.IsPermanent(err))

	altered := reference
	altered.SHA256 = strings.Repeat("0", 64)
	_, err = payload.Resolve(store, limit)(t.Context(), processor.Record{Payload: altered.JSON(), Headers: row.Headers})
	require.EqualError(t, err, "resolve its claim check "+reference.Object+": the object is not the one that was stored: its size or SHA-256 differs")
	require.True(t, processor.IsPermanent(err))

	require.NoError(t, store.Delete(t.Context(), reference.Object))
	_, err = payload.Resolve(store, limit)(t.Context(), row)
	require.EqualError(t, err, "resolve its claim check "+reference.Object+": the object is missing from its store")
	require.True(t, processor.IsPermanent(err))

	row.Payload = []byte(`{"object": "../../etc/passwd"}`)
	_, err = payload.Resolve(store, limit)(t.Context(), row)
	require.EqualError(t, err, "resolve its claim check: the row holds no reference to an object")
	require.True(t, processor.IsPermanent(err))
}
