package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What JSON readers, C strings and zero values like to spoil on the way from a row
// to a line.
func TestDrain_UnusualValuesArriveUnchanged(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 0)
	execute(t, pool, `
		CREATE TABLE public.unusual (
			id bigint PRIMARY KEY,
			created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
			customer text,
			body json
		);
		CREATE INDEX ON public.unusual (created_at, id);
		INSERT INTO public.unusual (id, customer, body) VALUES (9007199254740993, NULL, '{"nul": "\u0000", "n": 9007199254740993}');
		INSERT INTO public.unusual (id, customer, body) VALUES (9223372036854775807, 'c', NULL);
		INSERT INTO public.unusual (id, customer, body) VALUES (-9223372036854775808, '', '"\u0000"');`)
	config := file(t, `
processes:
  body: {start: beginning, source: {table: public.unusual, columns: {key: customer, payload: body}}, sink: {stdout: {}}}
  row: {start: beginning, source: {table: public.unusual, columns: {key: customer}}, sink: {stdout: {}}}
`)
	code, stdout, stderr := do(t, address, "run", "--drain", "-c", config)
	require.Zero(t, code, stderr)

	got := map[string][]string{}
	for line := range strings.Lines(stdout) {
		var record struct {
			Process string
			ID, Key json.RawMessage
			Payload json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(line), &record))
		got[record.Process] = append(got[record.Process], string(record.ID)+" "+string(record.Key)+" "+string(record.Payload))
	}
	require.Equal(t, []string{
		`"9007199254740993" "" {"nul":"\u0000","n":9007199254740993}`,
		`"9223372036854775807" "c" null`,
		`"-9223372036854775808" "" "\u0000"`,
	}, got["body"])
	require.Len(t, got["row"], 3)
	require.Contains(t, got["row"][0], `{"id":9007199254740993,`)
	require.Contains(t, got["row"][0], `"customer":null,"body":{"nul":"\u0000","n":9007199254740993}}`)
	require.Contains(t, got["row"][1], `{"id":9223372036854775807,`)
}

// One row of 100 MB goes through the whole program, and costs it no more than five
// times its size: four, and one more where a busy machine has it read twice.
func TestDrain_PayloadOf100MBInBoundedMemory(t *testing.T) {
	t.Parallel()
	const size = 100_000_000
	address, pool := database(t, 0)
	execute(t, pool, `
		CREATE TABLE public.large (
			id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
			created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
			body json
		);
		CREATE INDEX ON public.large (created_at, id);
		INSERT INTO public.large (body) VALUES (to_json(repeat('x', 100000000)));
		INSERT INTO public.large (body) VALUES ('"small"');`)
	config := file(t, "processes: {a: {start: beginning, source: {table: public.large, columns: {payload: body}, max_record_bytes: 200000000}, sink: {stdout: {}}}}")

	path := filepath.Join(t.TempDir(), "lines")
	lines, err := os.Create(path)
	require.NoError(t, err)
	defer lines.Close()
	cmd := exec.CommandContext(t.Context(), binary, "run", "-c", config)
	cmd.Env = []string{"DATABASE_URL=" + address}
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = lines, &stderr
	require.NoError(t, cmd.Start())
	// Where the machine is busy, one read alone may take as long as a read may: 90 s.
	require.Eventually(t, func() bool { return sequenceOr0(t, pool, "a") == 2 }, 3*patience, 10*time.Millisecond, &stderr)
	most, known := peak(t, cmd.Process.Pid)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait(), stderr.String())
	if known {
		t.Logf("peak %d MiB", most>>20)
		require.Less(t, most, 5*size)
	}

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	large, rest, _ := bytes.Cut(text, []byte("\n"))
	_, large, _ = bytes.Cut(large, []byte(`"payload":"`))
	large, _, _ = bytes.Cut(large, []byte(`"`))
	require.True(t, bytes.Equal(bytes.Repeat([]byte("x"), size), large), "%d bytes are left of it", len(large))
	require.Contains(t, string(rest), `"payload":"small"`)
}

// One row of 300 MB halts its own process, by name, and takes no memory of the
// daemon in which others go on.
func TestRun_BesideARowOf300MBMemoryIsBounded(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 3)
	execute(t, pool, `
		CREATE TABLE public.large (
			id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
			created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
			note text
		);
		CREATE INDEX ON public.large (created_at, id);
		INSERT INTO public.large (note) VALUES ('small'), (repeat('x', 300000000)), ('last');`)
	config := file(t, `
processes:
  large: {source: {table: public.large}, sink: {stdout: {}}, start: beginning}
  small: {source: {table: public.bookings}, sink: {stdout: {}}, start: beginning}`)
	p := start(t, address, "run", "-c", config)
	defer p.stop()
	var state, id, failure string
	require.Eventually(t, func() bool {
		err := pool.QueryRow(t.Context(), `SELECT state, coalesce(failed_record_id, ''), coalesce(failed_error, '')
			FROM public.cursor WHERE process_name = 'large'`).Scan(&state, &id, &failure)
		return err == nil && state == "halted"
	}, patience, tick)
	require.Equal(t, "2", id)
	require.Contains(t, failure, "max_record_bytes is 67108864")
	insert(t, pool, 3)
	require.Eventually(t, func() bool { return sequenceOr0(t, pool, "small") == 6 }, patience, tick)
	if most, known := peak(t, p.cmd.Process.Pid); known {
		t.Logf("peak %d MiB", most>>20)
		require.Less(t, most, 512<<20)
	}
	execute(t, pool, `UPDATE public.large SET note = 'smaller' WHERE id = 2`)
	code, _, stderr := do(t, address, "retry", "large")
	require.Zero(t, code, stderr)
	require.Eventually(t, func() bool { return sequenceOr0(t, pool, "large") == 3 }, patience, tick)
}

// peak is the most memory in bytes that a running process has had, where the
// system tells. (What a process is billed for after its end counts in what its
// parent had when it was forked.)
func peak(t testing.TB, pid int) (bytes int, known bool) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0, false
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	_, line, _ := strings.Cut(string(text), "VmHWM:")
	_, err = fmt.Sscanf(line, "%d kB", &bytes)
	require.NoError(t, err)
	return bytes << 10, true
}
