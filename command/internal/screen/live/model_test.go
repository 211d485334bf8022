package live

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/screen"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

var update = flag.Bool("update", false, "write the golden frames anew")

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// fleetOf are processes in several states, after so many seconds.
func fleetOf(seconds int) []daemon.Status {
	age := time.Duration(seconds) * time.Second
	backfill := daemon.Status{Row: cursor.Row{Process: "invoices", State: cursor.Running, Sequence: int64(seconds * 40), Epoch: 1, Holder: "pod-1:7:ABCDEF", Position: "int:00000000000000000040"},
		Lag: &daemon.Lag{Records: 9000 - int64(seconds*40), Age: &age}}
	halted := daemon.Status{Row: cursor.Row{Process: "booking_sms", State: cursor.Halted, Sequence: 4710, Epoch: 3, Holder: "pod-1:4242:K7QX2M", Position: "int:00000000000000004710",
		Failure: &cursor.Failure{Position: "int:00000000000000004711", RecordID: "4711", Attempts: 1, First: noon, Last: noon, Class: cursor.ClassPermanent,
			Error: "post to https://sms.example: answered 422 Unprocessable Entity: no such number"}},
		Lag: &daemon.Lag{Records: 12, Age: &age},
		Hold: &daemon.Hold{Kind: daemon.HoldHalted, Text: "halted at record 4711, which the receiver refuses for good, 1 attempt since 2026-11-20T12:00:00Z: " +
			"post to https://sms.example: answered 422 Unprocessable Entity: no such number", Next: "`ordered-dispatcher retry booking_sms`, or `ordered-dispatcher skip booking_sms --reason …`"}}
	paused := daemon.Status{Row: cursor.Row{Process: "audit", State: cursor.Paused, Sequence: 7, Epoch: 1, Position: "int:00000000000000000007"}, Lag: &daemon.Lag{},
		Hold: &daemon.Hold{Kind: daemon.HoldPaused, Text: "paused by ann since 2026-11-19T08:00:00Z: \"moving the ledger\"", Next: "`ordered-dispatcher resume audit`"}}
	return []daemon.Status{paused, halted, {Row: cursor.Row{Process: "new"}, New: true, Problem: "no worker has run it yet: start `ordered-dispatcher run`"}, backfill}
}

// watching is a view after 20 looks.
func watching(t testing.TB, width, height int, backend Backend) *model {
	t.Helper()
	m := newModel(t.Context(), backend, screen.Page{})
	m.Update(tea.WindowSizeMsg{Width: width, Height: height})
	for second := range 20 {
		at := noon.Add(time.Duration(second) * time.Second)
		m.Update(tickMsg(at))
		seen(m, at, fleetOf(second), nil)
	}
	return m
}

// seen is the answer to a look.
func seen(m *model, at time.Time, all []daemon.Status, err error) {
	m.Update(lookMsg{at: at, all: all, err: err})
}

// press presses keys, and lets the view have what follows from them.
func press(t testing.TB, m *model, keys ...string) {
	t.Helper()
	for _, k := range keys {
		key := tea.KeyPressMsg{Code: []rune(k)[0], Text: k}
		switch k {
		case "enter":
			key = tea.KeyPressMsg{Code: tea.KeyEnter}
		case "esc":
			key = tea.KeyPressMsg{Code: tea.KeyEscape}
		case "down":
			key = tea.KeyPressMsg{Code: tea.KeyDown}
		case "backspace":
			key = tea.KeyPressMsg{Code: tea.KeyBackspace}
		}
		if _, cmd := m.Update(key); cmd != nil {
			m.Update(cmd())
		}
	}
}

// requireFrame compares the frame with a golden one, and with the size of the terminal.
func requireFrame(t testing.TB, m *model, name string) {
	t.Helper()
	frame := m.View().Content
	lines := strings.Split(frame, "\n")
	require.LessOrEqual(t, len(lines), m.high)
	for _, line := range lines {
		require.LessOrEqual(t, ansi.StringWidth(line), m.page.Width, line)
	}
	path := filepath.Join("testdata", fmt.Sprintf("%s-%dx%d.golden", name, m.page.Width, m.high))
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(frame+"\n"), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), frame+"\n")
}

// record is what a backend has at the head of each process.
var record = &processor.Record{ID: "4711", Position: "int:00000000000000004711", Payload: []byte(`{"phone": "+49 30 1234", "text": "your booking` + "\x1b[2J" + `"}`)}

// backend is a backend that notes the decisions.
func backend(decided *[]cursor.Decision) Backend {
	return Backend{
		Actor: "ann",
		Next:  func(context.Context, string, cursor.Position) (*processor.Record, error) { return record, nil },
		Decide: func(_ context.Context, v Verb, process string, d cursor.Decision) (daemon.Outcome, error) {
			*decided = append(*decided, d)
			return daemon.Outcome{Change: operator.Change{Changed: true, Expect: "int:00000000000000004711"}, Text: "record 4711 of " + process + " is tried again at once (" + string(v) + ")"}, nil
		},
	}
}

func TestView_FramesOfEveryPage(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		var decided []cursor.Decision
		m := watching(t, size[0], size[1], backend(&decided))
		requireFrame(t, m, "fleet")
		press(t, m, "enter")
		requireFrame(t, m, "process")
		press(t, m, "v")
		requireFrame(t, m, "payload")
		press(t, m, "esc", "?")
		requireFrame(t, m, "help")
		press(t, m, "x", "r")
		requireFrame(t, m, "dry-run")
		press(t, m, "o", "k", "enter")
		requireFrame(t, m, "done")
	}
}

func TestView_WhatNeedsAPersonComesFirst(t *testing.T) {
	t.Parallel()
	m := watching(t, 80, 24, Backend{})
	var order []string
	for _, s := range m.all {
		order = append(order, s.Process)
	}
	require.Equal(t, []string{"booking_sms", "new", "audit", "invoices"}, order)
	require.Equal(t, "booking_sms", m.chosen)
	press(t, m, "down", "j", "j", "j")
	require.Equal(t, "invoices", m.chosen)
	press(t, m, "k")
	require.Equal(t, "audit", m.chosen)
	seen(m, noon.Add(time.Minute), fleetOf(60)[3:], nil)
	require.Equal(t, "invoices", m.chosen, "the other ones are gone")
}

func TestView_MeasuresRateCurveAndTimeLeft(t *testing.T) {
	t.Parallel()
	trace := watching(t, 80, 24, Backend{}).traces["invoices"]
	rate, ok := trace.rate()
	require.True(t, ok)
	require.InDelta(t, 40, rate, 0.01)
	left, ok := trace.left()
	require.True(t, ok)
	require.Equal(t, (9000-19*40)/40*time.Second, left)
	require.Equal(t, "          ██", trace.curve(12))
	_, ok = watching(t, 80, 24, Backend{}).traces["booking_sms"].left()
	require.False(t, ok, "it stands still")

	s := fleetOf(20)[3]
	s.Sequence += cursor.HistoryGap
	require.Len(t, trace.add(noon.Add(20*time.Second), s), 1, "numbers that leap count no records")
	s = fleetOf(20)[3]
	s.Sequence, s.Epoch = s.Sequence+cursor.SeekGap, s.Epoch+1
	require.Len(t, trace.add(noon.Add(20*time.Second), s), 1, "nor do those of a seek")
}

func TestView_ADecisionShowsItsDryRunAsksForAReasonAndCarriesTheVersion(t *testing.T) {
	t.Parallel()
	var decided []cursor.Decision
	m := watching(t, 80, 24, backend(&decided))
	press(t, m, "r")
	require.Len(t, decided, 1)
	require.True(t, decided[0].DryRun)
	press(t, m, "enter", " ", "enter")
	require.Len(t, decided, 1, "without a reason nothing is done")
	require.Contains(t, m.frame(), "the reason is missing")
	press(t, m, "o", "q", "backspace", "k", "enter")
	require.Len(t, decided, 2)
	expect := cursor.Position("int:00000000000000004711")
	require.Equal(t, cursor.Decision{Actor: "ann", Reason: "ok", Expect: &expect}, decided[1])
	require.NotNil(t, m.dialog, "its result is shown")
	press(t, m, "x")
	require.Nil(t, m.dialog)

	press(t, m, "p", "esc")
	require.Len(t, decided, 3, "the dry run alone")
	require.Nil(t, m.dialog)
	press(t, m, "j", "j", "p")
	require.Equal(t, Resume, m.dialog.verb, "a paused process is resumed")
	require.Equal(t, "audit", m.dialog.process)
}

// A busy process is at another record when the reason is typed.
func TestView_APauseExpectsNoPosition(t *testing.T) {
	t.Parallel()
	var decided []cursor.Decision
	m := watching(t, 80, 24, backend(&decided))
	press(t, m, "p")
	m.Update(tea.PasteMsg{Content: "the receiver\x1b[2J\nmoves"})
	require.Contains(t, m.frame(), "reason: the receiver[2Jmoves█", "a paste is typed, without what moves the terminal")
	press(t, m, "enter")
	require.Equal(t, cursor.Decision{Actor: "ann", Reason: "the receiver[2Jmoves"}, decided[1])
}

// A decision that is on its way may be done already.
func TestView_TheAnswerToADecisionIsWaitedFor(t *testing.T) {
	t.Parallel()
	var decided []cursor.Decision
	m := watching(t, 80, 24, backend(&decided))
	press(t, m, "r", "o", "k")
	_, decide := m.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
	press(t, m, "esc", "q")
	require.Equal(t, deciding, m.dialog.stage)
	m.Update(decide())
	require.Contains(t, m.frame(), "record 4711 of booking_sms is tried again at once")
	m.dialog.err = fmt.Errorf("commit: %w", cursor.ErrUncertain)
	require.Contains(t, m.frame(), "not known whether it is done: commit: ")
}

func TestView_AProcessThatDoesNotFitIsTurnedByPages(t *testing.T) {
	t.Parallel()
	m := watching(t, 80, 14, backend(new([]cursor.Decision)))
	press(t, m, "enter")
	require.Contains(t, m.frame(), "… PgDn shows the rest")
	require.NotContains(t, m.frame(), "skip booking_sms")
	for range 3 {
		m.Update(tea.KeyPressMsg{Code: tea.KeyPgDown})
	}
	require.Contains(t, m.frame(), "skip booking_sms")
	for range 2 {
		m.Update(tea.KeyPressMsg{Code: tea.KeyPgUp})
	}
	require.Contains(t, m.frame(), "halted\n", "its first line")
}

func TestView_APayloadIsShownOnAKeyAlone(t *testing.T) {
	t.Parallel()
	m := watching(t, 80, 24, backend(new([]cursor.Decision)))
	press(t, m, "v")
	require.Nil(t, m.head, "not in the list")
	press(t, m, "enter")
	require.NotContains(t, m.frame(), "+49 30 1234")
	press(t, m, "v")
	require.Contains(t, m.frame(), "+49 30 1234")
	require.NotContains(t, m.frame(), "\x1b", "nothing of it moves the terminal")
	press(t, m, "v")
	require.NotContains(t, m.frame(), "+49 30 1234")
	press(t, m, "v", "esc", "enter")
	require.NotContains(t, m.frame(), "+49 30 1234")
}

func TestView_ADatabaseThatIsAwayLeavesTheLastLook(t *testing.T) {
	t.Parallel()
	m := watching(t, 80, 24, Backend{})
	seen(m, noon.Add(30*time.Second), nil, errors.New("connection refused"))
	seen(m, noon.Add(40*time.Second), nil, errors.New("connection refused again"))
	require.Contains(t, m.frame(), "no answer from the database since 12:00:30: connection refused again")
	require.Contains(t, m.frame(), "booking_sms")
	seen(m, noon.Add(50*time.Second), fleetOf(50), nil)
	require.NotContains(t, m.frame(), "no answer")

	fresh := newModel(t.Context(), Backend{}, screen.Page{Width: 40})
	seen(fresh, noon, nil, errors.New("connection refused; start the server, or correct host and port"))
	require.Contains(t, fresh.frame(), "correct host and port", "whole, if there is nothing else to show")

	m.looking = true
	m.Update(tickMsg(noon.Add(58 * time.Second)))
	require.Contains(t, m.frame(), "seen 8s ago", "a look that hangs")

	_, cmd := m.Update(lookMsg{err: &daemon.UsageError{Err: errors.New("there is no such process")}})
	require.Equal(t, tea.QuitMsg{}, cmd())
	require.EqualError(t, m.err, "there is no such process")
}

// Whatever the size, the frame fits.
func TestView_FitsIntoAnyTerminal(t *testing.T) {
	t.Parallel()
	m := watching(t, 80, 24, backend(new([]cursor.Decision)))
	many := fleetOf(1)
	for i := range 300 {
		many = append(many, daemon.Status{Row: cursor.Row{Process: fmt.Sprintf("p%03d", i), State: cursor.Running}})
	}
	seen(m, noon.Add(time.Minute), many, nil)
	for _, size := range [][2]int{{200, 60}, {80, 24}, {40, 10}, {20, 5}, {3, 2}, {1, 1}} {
		m.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		for _, keys := range [][]string{{"G"}, {"g"}, {"enter"}, {"v"}, {"esc"}, {"?"}, {"x"}, {"r"}, {"esc"}} {
			press(t, m, keys...)
			lines := strings.Split(m.frame(), "\n")
			require.LessOrEqual(t, len(lines), size[1])
			for _, line := range lines {
				require.LessOrEqual(t, ansi.StringWidth(line), size[0], line)
			}
		}
		press(t, m, "G")
		require.Equal(t, "p299", m.chosen)
		if size[1] >= 10 {
			require.Contains(t, m.frame(), "> p", "the chosen one is on the page")
		}
		press(t, m, "g")
	}
}
