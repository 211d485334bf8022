package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/webhook"
)

// TestMain makes this test binary two programs more: a worker that reads without a fence, when it is started as the
// demo starts its workers (run -c FILE), and a demo in a process of its own (demo DATABASE_URL EXECUTABLE).
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "demo" {
		if err := Run(context.Background(), Config{DatabaseURL: os.Args[2], Executable: os.Args[3]}); err != nil {
			log.Fatal(err)
		}
		return
	}
	if len(os.Args) == 4 && os.Args[1] == "run" {
		if err := naiveWorker(os.Args[3]); err != nil {
			log.Fatal(err)
		}
		return
	}
	os.Exit(test(m))
}

func test(m *testing.M) int {
	var err error
	if testDir, err = os.MkdirTemp("", "demo-test-"); err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(testDir)
	return m.Run()
}

// A demo whose verdict is good whatever the dispatcher does would prove nothing.
func TestRun_ADispatcherThatLosesRecordsGetsABadVerdict(t *testing.T) {
	t.Parallel()
	out := &output{}
	pool := pgtest.Database(t)
	config := testConfig(t, out)
	var err error
	config.Executable, err = os.Executable()
	require.NoError(t, err)
	require.ErrorContains(t, Run(t.Context(), config), "the verdict is bad: ")
	require.Regexp(t, `lost +[1-9]\d*  bookings \d+`, out.String())
	require.Regexp(t, `BAD: \d+ lost`, out.String())
	requireNothingLeft(t, pool, out)
}

// naiveSource passes over two early bookings. One without a fence would lose some, too, but
// which, and whether, is up to the machine.
type naiveSource struct {
	pool  *pgxpool.Pool
	table string
}

func (s naiveSource) Read(ctx context.Context, after cursor.Position, limit int) (processor.Page, error) {
	rows, _ := s.pool.Query(ctx, `SELECT to_char(created_at, 'YYYY-MM-DD HH24:MI:SS.US') || lpad(id::text, 20, '0'), row_to_json(b)
		FROM `+s.table+` b
		WHERE to_char(created_at, 'YYYY-MM-DD HH24:MI:SS.US') || lpad(id::text, 20, '0') > $1
			AND id NOT IN (7, 17)
		ORDER BY 1
		LIMIT $2`, string(after), limit)
	records, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r processor.Record, err error) {
		return r, row.Scan(&r.Position, (*[]byte)(&r.Payload))
	})
	return processor.Page{Records: records}, err
}

func naiveWorker(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	value := func(pattern string) string { return string(regexp.MustCompile(pattern).FindSubmatch(text)[1]) }
	address, err := os.ReadFile(value(`\{file:(.*)\}`))
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, string(address))
	if err != nil {
		return err
	}
	defer pool.Close()
	store, err := cursor.NewStore(pool, cursor.Config{Schema: value(`schema: (.*)`)})
	if err != nil {
		return err
	}
	sink, err := webhook.New(webhook.Config{URL: value(`url: "(.*)"`)})
	if err != nil {
		return err
	}
	process, err := processor.New(processor.Config{Process: processName, Store: store, Start: processor.Beginning,
		Source: naiveSource{pool, value(`table: (.*)`)}, Dispatch: processor.Each(sink), Poll: 20 * time.Millisecond})
	if err != nil {
		return err
	}
	return process.Run(ctx)
}
