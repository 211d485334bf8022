package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// statusDocument is what of `status --json` is judged.
type statusDocument struct {
	Processes []processStatus `json:"processes"`
}

type processStatus struct {
	Process  string `json:"process"`
	State    string `json:"state"`
	Position string `json:"position"`
	Sequence int64  `json:"sequence,string"`
	Epoch    int64  `json:"epoch,string"`
	Lag      *struct {
		Records int64 `json:"records,string"`
	} `json:"lag"`
	Failure *struct {
		Position string `json:"position"`
	} `json:"failure"`
	HeldBackBy []json.RawMessage `json:"held_back_by"`
	Hold       *struct {
		Kind string `json:"kind"`
	} `json:"hold"`
	Problem string `json:"problem"`
}

// askStatus runs the command as an operator would. Processes that no worker has run yet are left out.
func (f *field) askStatus(ctx context.Context) ([]history.Told, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	from := f.clock.Now()
	cmd := f.dir.Command(ctx, f.desk.program, "status", "-c", f.dir.Path(f.desk.config()), "--json")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	leased := f.database.leased(ctx)
	out, err := cmd.Output()
	delivering := leased()
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		return nil, fmt.Errorf("run status: %w", err)
	}
	var document statusDocument
	if err := json.Unmarshal(out, &document); err != nil {
		return nil, errors.Join(fmt.Errorf("read what status says: %w", err), errors.New(stderr.String()))
	}
	var all []history.Told
	for _, p := range document.Processes {
		if p.State != "new" {
			t := p.told()
			t.From, t.T, t.Leased = from, f.clock.Now(), delivering[p.Process]
			all = append(all, t)
		}
	}
	return all, nil
}

// statusTimeout ends a command that hangs, on whatever machine.
const statusTimeout = 5 * time.Minute

func (p processStatus) told() history.Told {
	t := history.Told{
		Process: p.Process, Lag: -1, HeldBack: len(p.HeldBackBy), Problem: p.Problem,
		At: history.Standing{Position: p.Position, Sequence: p.Sequence, Epoch: p.Epoch, State: p.State},
	}
	switch p.State {
	case "failing", "no worker", "cannot read": // what status adds to a row that is set to run
		t.At.State = "running"
	}
	if p.Lag != nil {
		t.Lag = p.Lag.Records
	}
	if p.Failure != nil {
		t.At.Failed = p.Failure.Position
	}
	if p.Hold != nil {
		t.Hold = p.Hold.Kind
	}
	return t
}

// scrape reads the metrics of a worker as a Prometheus would. Processes that it has not looked at yet are left out.
func (f *field) scrape(ctx context.Context, w *worker) ([]history.Told, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.listens()+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	answer, err := scraper.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(answer.Status)
	}
	all, err := readMetrics(answer.Body)
	if err != nil {
		return nil, err
	}
	var told []history.Told
	for process, gauges := range all {
		if at, looked := gauges["last_look_timestamp_seconds"]; looked {
			t := gauges.told()
			t.From, t.T = f.clock.At(time.UnixMicro(int64(at*1e6))), f.clock.Now()
			t.Process, t.Worker = process, w.name
			told = append(told, t)
		}
	}
	return told, nil
}

const scrapeTimeout = 5 * time.Second

// scraper keeps no connection, as the daemons do not live long.
var scraper = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// gauges of a process, by name, without those that have more labels.
type gauges map[string]float64

// told leaves the lag out: it is counted at another time, which is not told.
func (g gauges) told() history.Told {
	t := history.Told{Lag: -1, At: history.Standing{Sequence: int64(g["sequence"]), Epoch: int64(g["epoch"]), State: "running"}}
	switch {
	case g["halted_seconds"] > 0:
		t.At.State = "halted"
	case g["paused"] == 1:
		t.At.State = "paused"
	}
	return t
}

// readMetrics reads the lines of Prometheus' text format that have the label process alone.
func readMetrics(r io.Reader) (map[string]gauges, error) {
	all := map[string]gauges{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		m := metric.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		value, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			return nil, fmt.Errorf("read %q: %w", m[0], err)
		}
		if all[m[2]] == nil {
			all[m[2]] = gauges{}
		}
		all[m[2]][m[1]] = value
	}
	return all, lines.Err()
}

var metric = regexp.MustCompile(`^ordered_dispatcher_(\w+)\{process="([^"]+)"\} (\S+)$`)
