package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// cellReceiver is where processes of the cell send records to.
type cellReceiver interface {
	name() string
	processes() []cellProcess
	// read returns what there is, in its order: all that came, or since it was emptied.
	read(ctx context.Context) ([]history.Receipt, error)
	close(ctx context.Context) error
}

// emptied is a receiver that somebody empties now and then.
type emptied interface {
	empty(ctx context.Context) error
}

// cellProcess is a process of the cell.
type cellProcess struct {
	name, table string
	sink        string // lines of YAML
	checkpoint  int
	once        bool // the receiver takes each number once
}

// atLength is from which length on a campaign has the receivers that take long to start.
const atLength = 2 * time.Minute

// openCellReceivers starts them. What was started is returned even if another one was not.
func openCellReceivers(ctx context.Context, clock history.Clock, length time.Duration) (all []cellReceiver, err error) {
	open := []func(context.Context, history.Clock) (cellReceiver, error){openCellHook, openCellTarget, openCellStream}
	if length >= atLength {
		open = append(open, openCellQueue, openCellTopic)
	}
	for _, start := range open {
		r, err := start(ctx, clock)
		if err != nil {
			return all, err
		}
		all = append(all, r)
	}
	return all, nil
}

// cellProcesses are those of all receivers.
func cellProcesses(receivers []cellReceiver) []cellProcess {
	var all []cellProcess
	for _, r := range receivers {
		all = append(all, r.processes()...)
	}
	return all
}

// cellConfiguration is the file of a daemon, or of the operator.
func cellConfiguration(receivers []cellReceiver, databaseFile string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "database: ${file:%s}\nschema: %s\nprocesses:\n", databaseFile, schema)
	orders := map[string]string{}
	for _, s := range cellSources() {
		orders[s.name] = s.order
	}
	for _, p := range cellProcesses(receivers) {
		fmt.Fprintf(&b, "  %s:\n    source: {table: app.%s, order: %s, columns: {key: key, payload: payload}}\n    start: beginning\n", p.name, p.table, orders[p.table])
		fmt.Fprintf(&b, "    checkpoint: %d\n    retry: {initial: 20ms, max: 500ms}\n    sink:\n%s\n", max(1, p.checkpoint), p.sink)
	}
	return b.String()
}

// hook is an HTTP server that notes every record, and takes it.
type hook struct {
	server *http.Server
	addr   string
	clock  history.Clock

	mu  sync.Mutex
	all []history.Receipt
	// next is called once, before a record is answered.
	next atomic.Pointer[func()]
}

func openCellHook(_ context.Context, clock history.Clock) (cellReceiver, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the receiver of the cell: %w", err)
	}
	h := &hook{addr: listener.Addr().String(), clock: clock}
	h.server = &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go h.server.Serve(listener)
	return h, nil
}

func (h *hook) name() string { return "webhook" }

func (h *hook) processes() []cellProcess {
	sink := func(process string) string {
		return fmt.Sprintf("      webhook: {url: \"http://%s/%s\", timeout: %v}", h.addr, process, webhookTimeout)
	}
	return []cellProcess{
		{name: "cell_stamped_hook", table: "stamped", sink: sink("cell_stamped_hook")},
		{name: "cell_bare_hook", table: "bare", sink: sink("cell_bare_hook"), checkpoint: 3},
	}
}

func (h *hook) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // torn: it never arrived
	}
	r, err := readHook(req, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	r.T = h.clock.Now()
	h.all = append(h.all, r)
	if next := h.next.Swap(nil); next != nil {
		(*next)()
	}
	w.WriteHeader(http.StatusNoContent)
}

func readHook(req *http.Request, body []byte) (history.Receipt, error) {
	key, keyErr := url.PathUnescape(req.Header.Get("Ordered-Key"))
	sequence, sequenceErr := strconv.ParseInt(req.Header.Get("Ordered-Sequence"), 10, 64)
	epoch, epochErr := strconv.ParseInt(req.Header.Get("Ordered-Epoch"), 10, 64)
	return history.Receipt{
		Process: strings.Trim(req.URL.Path, "/"), Receiver: "webhook", Key: key, Hash: digest(body),
		DedupKey: req.Header.Get("Idempotency-Key"), Sequence: sequence, Epoch: epoch,
	}, errors.Join(keyErr, sequenceErr, epochErr)
}

func digest(payload []byte) string {
	sum := sha256.Sum256(payload)
	return hex.EncodeToString(sum[:])
}

func (h *hook) read(context.Context) ([]history.Receipt, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all, nil
}

func (h *hook) close(context.Context) error { return h.server.Close() }
