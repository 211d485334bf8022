package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// maxTail is how many of the last deliveries a page shows.
const maxTail = 15

type processPage struct {
	frame
	Short, Live, Problem string
	Panel                *panel
	Series               string
	SeriesNote           string
	RateText             string
	LatencyText          string
	Actions              actions
	parts
}

// parts are the pieces of the page that change as the board looks.
type parts struct {
	Standing stateOf
	Head     *sheet
	Blocker  *sheet
	Backfill *progress
	Tail     tail
	Holds    holds
	History  history
	Facts    []fact
}

// stateOf says how the process is, and why.
type stateOf struct {
	State     standing
	Title     string
	Sentences [][]words
	Next      []words
	Also      [][]words
}

type progress struct {
	Percent    string
	Text, Left string
}

type tail struct {
	Note, None string
	Lines      []delivery
}

type delivery struct {
	At       moment
	ID       long
	About    string
	Position long
}

// actions are the decisions that the page offers.
type actions struct {
	CSRF, URL, Refused string
	List               []action
	Seek               bool
}

type action struct {
	Verb, Name, About, Key string
	NeedsReason, Main      bool
}

func (c *Console) process(w http.ResponseWriter, r *http.Request) {
	c.showProcess(w, r, http.StatusOK, nil)
}

// showProcess shows the page of a process, with a panel if there is one.
func (c *Console) showProcess(w http.ResponseWriter, r *http.Request, status int, shown *panel) {
	name := r.PathValue("name")
	p, err := c.desk.Process(r.Context(), name, sight(r))
	if err != nil {
		c.fail(w, r, err)
		return
	}
	recent, tailErr := c.desk.Tail(r.Context(), name, "", maxTail)
	short := visible.Inline(visible.Cut(name))
	page := processPage{
		frame: c.frame(r, short, "fleet"), Short: short, Live: processURL(name) + "/live", Panel: shown, Problem: visible.Text(p.Problem),
		Series: seriesOf(p), SeriesNote: "the last 15 minutes, as far as somebody looked, in UTC",
		RateText: rateText(p), LatencyText: latencyText(p),
		Actions: newActions(r, p), parts: newParts(p, recent.Records, tailErr),
	}
	c.show(w, status, "process", page)
}

// processLive streams the parts of a process, its series and its deliveries.
func (c *Console) processLive(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if _, err := c.desk.Process(r.Context(), name, sight(r)); kindOf(err) == desk.KindUnknown {
		c.fail(w, r, err) // else the stream would hold its place, and never have news
		return
	}
	var recent []desk.Record
	from, at := "", ""
	c.stream(w, r, name, func() ([]part, error) {
		p, err := c.desk.Process(r.Context(), name, sight(r))
		if err != nil {
			return nil, err
		}
		var tailErr error
		if p.Position != at || at == "" {
			var more desk.Tail
			if more, tailErr = c.desk.Tail(r.Context(), name, from, maxTail); tailErr == nil {
				recent, from, at = lastOf(recent, more), more.Next, p.Position
			}
		}
		now := newParts(p, recent, tailErr)
		return []part{
			c.part("process", "standing", now.Standing), c.part("process", "head", now.Head), c.part("process", "blocker", now.Blocker),
			c.part("process", "problem", visible.Text(p.Problem)),
			c.part("process", "backfill", now.Backfill), c.part("process", "tail", now.Tail), c.part("process", "holds", now.Holds),
			c.part("process", "history", now.History), c.part("process", "facts", now.Facts), c.part("process", "actions", newActions(r, p)),
			c.part("process", "rate", rateText(p)), c.part("process", "latency", latencyText(p)), text("series", "series", seriesOf(p)),
		}, nil
	})
}

// lastOf adds new deliveries to those that the page has.
func lastOf(have []desk.Record, more desk.Tail) []desk.Record {
	if more.More {
		have = nil // some in between were left out
	}
	have = append(have, more.Records...)
	return have[max(0, len(have)-maxTail):]
}

func newParts(p desk.Process, recent []desk.Record, tailErr error) parts {
	return parts{
		Standing: newState(p), Head: newHead(p), Blocker: newBlocker(p), Backfill: newBackfill(p), Tail: newTail(recent, p.HeadProblem, tailErr),
		Holds: newHolds(p, time.Now()), History: newHistory(p), Facts: newFacts(p),
	}
}

func newState(p desk.Process) stateOf {
	s := stateOf{State: stateOfLine(p.Line), Title: "Nothing is known that holds it up"}
	switch {
	case p.Hold != nil:
		next := p.Hold.Next
		if p.Hold.SQL != "" && len(p.HeldBy) == 0 { // otherwise it stands with the session
			next += ": " + p.Hold.SQL
		}
		s.Title, s.Next = holdTitles[p.Hold.Cause], newProse(next)
		s.Sentences = [][]words{newProse(p.Hold.Text)}
	case p.Need != nil:
		s.Title = "It needs you"
	case p.Waiting != nil && p.Waiting.Records == 0:
		s.Title = "Every record is delivered"
	case p.Waiting != nil:
		s.Title = "It delivers"
		if p.Backfill != nil {
			s.Title = "It delivers, and catches up"
		}
	}
	if p.Need != nil && p.Hold == nil {
		s.Sentences = append(s.Sentences, newProse(p.Need.Text))
	}
	for _, note := range p.Notes {
		s.Also = append(s.Also, newProse(note))
	}
	return s
}

var holdTitles = map[desk.Cause]string{
	desk.CauseFence: "An open transaction holds records back", desk.CauseReceiver: "The receiver holds it up", desk.CauseHalt: "It waits for your decision",
	desk.CauseLimit: "Its limit holds it up", desk.CausePause: "It is paused", desk.CauseNobody: "No worker runs it",
	desk.CauseLock: "Another session has a lock that it needs", desk.CauseBacklog: "It delivers", desk.CauseUnknown: "Something holds it up",
}

func newBackfill(p desk.Process) *progress {
	b := p.Backfill
	if b == nil {
		return nil
	}
	about := ""
	if b.Estimated {
		about = "about "
	}
	out := &progress{Percent: fmt.Sprintf("%.1f", 100*b.Part), Left: "time left: not known"}
	out.Text = fmt.Sprintf("%s of %s%s · %s %%", counted(b.Done, "record", "records"), about, count(b.Done+b.Left), out.Percent)
	if b.TimeLeft != nil {
		out.Left = took(*b.TimeLeft) + " left"
	}
	return out
}

// newTail shows the last deliveries. problem is why they may not be known.
func newTail(recent []desk.Record, problem string, err error) tail {
	t := tail{Note: "the newest first", None: "No delivery was seen yet."}
	if problem != "" {
		t.None = "No delivery is known."
	}
	if err != nil {
		t.None = "They are not known: " + sentence(err.Error())
		return t
	}
	for _, r := range slices.Backward(recent) {
		about := r.Type
		if r.Key != "" {
			about = strings.TrimSpace(r.Key + " " + r.Type)
		}
		t.Lines = append(t.Lines, delivery{momentOf(r.CreatedAt), newLong("t-"+htmlID(r.Position), r.ID), visible.Inline(visible.Cut(about)), newLong("tp-"+htmlID(r.Position), r.Position)})
	}
	return t
}

func newFacts(p desk.Process) []fact {
	facts := []fact{written("position", orDash(p.Position)), said("sequence", count(p.Sequence)), said("epoch", count(p.Epoch)), written("worker", orDash(p.Worker)), said("row changed", orDash(momentOf(p.MovedAt).Text))}
	if p.Waiting != nil {
		waiting := count(p.Waiting.Records)
		if p.Waiting.Capped {
			waiting += " or more"
		}
		if p.Waiting.Seconds != nil && p.Waiting.Records > 0 {
			waiting += ", the oldest for " + took(*p.Waiting.Seconds)
		}
		facts = append(facts, said("waiting", waiting))
	}
	if p.Rate != nil {
		facts = append(facts, said("rate", pace(*p.Rate)))
	}
	if p.Limit != "" {
		facts = append(facts, said("limit", p.Limit))
	}
	if p.DeadLetters != nil {
		facts = append(facts, said("dead letters", count(*p.DeadLetters)+" open"))
	}
	if p.Table != "" {
		facts = append(facts, written("table", p.Table), said("sink", p.Sink))
	}
	if !p.Configured {
		facts = append(facts, said("file", "this daemon's file does not have it"))
	}
	return facts
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

// series is what the plots draw.
type series struct {
	At      []int64    `json:"at"`
	Rate    []*float64 `json:"rate"`
	Latency []*float64 `json:"latency"`
}

func seriesOf(p desk.Process) string {
	s := series{At: []int64{}, Rate: []*float64{}, Latency: []*float64{}}
	for _, point := range p.Series {
		s.At, s.Rate, s.Latency = append(s.At, point.At.Unix()), append(s.Rate, point.Rate), append(s.Latency, point.Latency)
	}
	text, err := json.Marshal(s)
	if err != nil {
		return "{}"
	}
	return string(text)
}

func rateText(p desk.Process) string {
	if p.Rate == nil {
		return "Records delivered a second: not known yet"
	}
	return "Records delivered a second, now " + pace(*p.Rate)
}

func latencyText(p desk.Process) string {
	for _, point := range slices.Backward(p.Series) {
		if point.Latency != nil {
			return "From creation to delivery: the latest took " + took(*point.Latency)
		}
	}
	return "From creation to delivery: no delivery was seen in this time"
}

// offers are the decisions, with what each is for.
var offers = []action{
	{Verb: "retry", Name: "Retry", Key: "r", About: "Tries the failing record again at once."},
	{Verb: "skip", Name: "Skip", Key: "s", About: "Passes over the failing record, for good."},
	{Verb: "resume", Name: "Resume", Key: "p", About: "Lets it run again."},
	{Verb: "pause", Name: "Pause", Key: "p", About: "Stops it at its next checkpoint."},
}

func newActions(r *http.Request, p desk.Process) actions {
	v := who(r)
	a := actions{CSRF: v.CSRF, URL: processURL(p.Line.Process) + "/preview", Seek: p.Configured}
	if !v.Operate {
		a.Refused = "You may look and not decide."
		if v.Logins {
			a.Refused += " Sign in with a login that may operate."
		} else {
			a.Refused += " The file of the daemon names no login that may operate: see `admin` in docs/configuration.md."
		}
		return a
	}
	for i, offer := range offers {
		if slices.Contains(p.Verbs, desk.Verb(offer.Verb)) {
			offer.NeedsReason = desk.Verb(offer.Verb).NeedsReason()
			offer.Main = i == 0 || offer.Verb == "resume"
			a.List = append(a.List, offer)
		}
	}
	return a
}
