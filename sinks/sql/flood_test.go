package sql_test

import (
	"context"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/tcptest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sinktest"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/sql"
)

// Each message is below the bound of one. Not parallel: it looks at the memory of all.
func TestRemote_ATargetThatNeverEndsItsAnswerTakesNoMemory(t *testing.T) {
	value := make([]byte, 1<<20)
	text := strings.Repeat("v", 50_000)
	for name, message := range map[string]func(i int) pgproto3.BackendMessage{
		"rows": func(i int) pgproto3.BackendMessage {
			if i == 0 {
				return &pgproto3.RowDescription{Fields: []pgproto3.FieldDescription{{Name: []byte("position")}}}
			}
			return &pgproto3.DataRow{Values: [][]byte{value}}
		},
		"notifications": func(int) pgproto3.BackendMessage {
			return &pgproto3.NotificationResponse{Channel: "c", Payload: text}
		},
		"parameters": func(i int) pgproto3.BackendMessage {
			return &pgproto3.ParameterStatus{Name: "p" + strconv.Itoa(i), Value: text}
		},
		"results": func(int) pgproto3.BackendMessage { return &pgproto3.EmptyQueryResponse{} },
	} {
		t.Run(name, func(t *testing.T) {
			address, _ := tcptest.PostgresFlood(t, tcptest.Statement, message)
			remote := sinktest.Made(t, sql.NewRemote, sql.Config{
				URL: "postgres://u@" + address + "/d?sslmode=disable", Statements: []string{"SELECT 1"}, Timeout: 2 * time.Second,
			})
			peak := watchHeap(t)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			_, err := remote.DeliverBatch(ctx, sinktest.Deliveries(1, 1))
			require.Error(t, err)
			require.Less(t, peak(), uint64(100<<20))
		})
	}
}

// watchHeap returns a function that ends the watch and returns the most bytes that were
// live after a collection.
func watchHeap(t testing.TB) (peak func() uint64) {
	t.Helper()
	stop, most := make(chan struct{}), make(chan uint64)
	go func() {
		var n uint64
		for {
			var now runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&now)
			n = max(n, now.HeapAlloc)
			select {
			case <-stop:
				most <- n
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() uint64 { close(stop); return <-most }
}
