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

// sheet is a box of facts.
type sheet struct {
	Title, Note           string
	Facts                 []fact
	Said, Payload, Masked string
	SQL                   string
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

type holds struct {
	Note, Label, None string
	Spans             []span
	Lines             []heldLine
}

// span is a rectangle of the last day: X and Width are minutes.
type span struct {
	Tone, X, Width, Text string
}

type heldLine struct {
	State standing
	From  moment
	Took  string
	Text  long
}

type history struct {
	All, None string
	Events    []happened
}

type happened struct {
	Tone, Action, By, Reason string
	At                       moment
	Detail                   long
}

// actions are the decisions that the page offers.
type actions struct {
	CSRF, URL, Refused string
	List               []action
	Seek               bool
}

type action struct {
	Verb, Name, About, Key string
	Main                   bool
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
		frame: c.frame(r, short, "fleet"), Short: short, Live: processURL(name) + "/live", Panel: shown,
		Series: seriesOf(p), SeriesNote: "the last 15 minutes, as far as somebody looked, in UTC",
		RateText: rateText(p), LatencyText: latencyText(p),
		Actions: newActions(r, p), parts: newParts(p, recent.Records, tailErr),
	}
	c.show(w, status, "process", page)
}

// processLive streams the parts of a process, its series and its deliveries.
func (c *Console) processLive(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
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
			c.part("process", "backfill", now.Backfill), c.part("process", "tail", now.Tail), c.part("process", "holds", now.Holds),
			c.part("process", "history", now.History), c.part("process", "facts", now.Facts), c.part("process", "actions", newActions(r, p)),
			{event: "series", id: "series", text: seriesOf(p)},
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
		Standing: newState(p), Head: newHead(p), Blocker: newBlocker(p), Backfill: newBackfill(p), Tail: newTail(recent, tailErr),
		Holds: newHolds(p, time.Now()), History: newHistory(p), Facts: newFacts(p),
	}
}

func newState(p desk.Process) stateOf {
	s := stateOf{State: stateOfLine(p.Line), Title: "Nothing is known that holds it up"}
	switch {
	case p.Hold != nil:
		text, next, _ := strings.Cut(p.Hold.Text, "; next: ")
		next, _ = nextStep(next)
		s.Title, s.Next = holdTitles[p.Hold.Cause], newProse(next)
		s.Sentences = [][]words{newProse(text)}
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

func newHead(p desk.Process) *sheet {
	if p.Head == nil && p.Failure == nil {
		if p.HeadProblem == "" {
			return nil
		}
		return &sheet{Title: "The record at the head", Masked: "It is not known: " + sentence(p.HeadProblem)}
	}
	s := &sheet{Title: "The record at the head", Note: "it is delivered next"}
	if f := p.Failure; f != nil {
		s.Note = counted(int64(f.Attempts), "attempt", "attempts")
		s.Said = visible.Text(f.Error)
		if p.Head == nil {
			s.Facts = append(s.Facts, written("id", f.RecordID), written("position", f.Position))
		}
	}
	if p.Head != nil {
		s.Facts = append(s.Facts, recordFacts(*p.Head)...)
		s.Payload, s.Masked = payloadOf(*p.Head)
	}
	if f := p.Failure; f != nil {
		s.Facts = append(s.Facts, said("first failed", newMoment(f.First).Text), said("last failed", newMoment(f.Last).Text), said("class", f.Class), said("next attempt", nextAttempt(*f)))
	}
	if p.HeadProblem != "" {
		s.Facts = append(s.Facts, said("problem", p.HeadProblem))
	}
	return s
}

func nextAttempt(f desk.Failure) string {
	switch {
	case f.Permanent:
		return "none: it failed for good, so it waits for your decision"
	case f.NextIn <= 0:
		return "due now"
	default:
		return "in " + took(f.NextIn)
	}
}

func recordFacts(r desk.Record) []fact {
	all := []fact{written("id", r.ID), written("position", r.Position)}
	for _, f := range []fact{written("key", r.Key), said("type", r.Type), written("dedup key", r.DedupKey), said("created", momentOf(r.CreatedAt).Text), said("fault", r.Fault)} {
		if f.Value.Short != "" {
			all = append(all, f)
		}
	}
	var names []string
	for name := range r.Headers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		all = append(all, written("header "+visible.Short(name), r.Headers[name]))
	}
	return all
}

// payloadOf returns the payload, or why there is none to see.
func payloadOf(r desk.Record) (payload, masked string) {
	switch {
	case r.Masked:
		return "", "The payload is hidden: you may see it after a login with the right to operate, or to see payloads."
	case r.Withheld:
		return "", "The payload is hidden: the daemon's role in the database may not read it."
	case r.Payload == "":
		return "", "The payload is empty."
	case r.Cut:
		return visible.Text(r.Payload) + "\n…", ""
	default:
		return visible.Text(pretty(r.Payload)), ""
	}
}

// pretty indents JSON, and leaves anything else as it is.
func pretty(text string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if !json.Valid([]byte(text)) || encoder.Encode(json.RawMessage(text)) != nil {
		return text
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func newBlocker(p desk.Process) *sheet {
	if len(p.HeldBy) == 0 {
		return nil
	}
	h := p.HeldBy[0]
	s := &sheet{Title: "The session that holds the fence", Note: "the oldest of " + counted(int64(len(p.HeldBy)), "session", "sessions")}
	if len(p.HeldBy) == 1 {
		s.Note = ""
	}
	if h.PID != 0 {
		s.Facts = append(s.Facts, said("pid", fmt.Sprint(h.PID)))
	}
	for _, f := range []fact{written("prepared as", h.GID), said("application", h.Application), said("user", h.User), said("state", h.State), said("open since", momentOf(h.Since).Text), written("command", h.Command)} {
		if f.Value.Short != "" {
			s.Facts = append(s.Facts, f)
		}
	}
	_, next, _ := strings.Cut(h.Text, "; next: ")
	next, s.SQL = nextStep(next)
	if next != "" {
		s.Facts = append(s.Facts, said("what to do", next))
	}
	s.SQL = visible.Text(s.SQL)
	return s
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

func newTail(recent []desk.Record, err error) tail {
	t := tail{Note: "the newest first", None: "No delivery was seen yet."}
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

var spanTones = map[desk.Cause]string{desk.CauseHalt: "bad", desk.CauseNobody: "bad", desk.CauseLock: "bad", desk.CauseReceiver: "warn", desk.CauseFence: "warn", desk.CauseLimit: "idle", desk.CausePause: "idle"}

func newHolds(p desk.Process, now time.Time) holds {
	const day = 24 * time.Hour
	h := holds{Label: "what held it in the last 24 hours", None: "Nothing held it up, as far as somebody looked."}
	if !p.Since.IsZero() {
		h.Note = "seen since " + newMoment(p.Since).Text
	}
	for i, s := range p.Held {
		begin := max(0, day-now.Sub(s.From))
		width := max(s.To.Sub(s.From), 4*time.Minute)
		h.Spans = append(h.Spans, span{spanTones[s.Cause], fmt.Sprintf("%.0f", begin.Minutes()), fmt.Sprintf("%.0f", width.Minutes()), causeWords[s.Cause] + ", " + took(s.To.Sub(s.From).Seconds())})
		if i >= 12 {
			continue // the bar has them all
		}
		text := s.Text
		if s.Who != "" {
			text = s.Who + ": " + text
		}
		length := took(s.To.Sub(s.From).Seconds())
		if s.Open {
			length += ", goes on"
		}
		h.Lines = append(h.Lines, heldLine{standing{causeWords[s.Cause], spanTones[s.Cause]}, newMoment(s.From), length, newLong("h-"+htmlID(s.From.String()), text)})
	}
	return h
}

// eventTones are the colours of events.
var eventTones = map[string]string{"halt": "bad", "skip": "warn", "seek": "warn", "dead_letter": "warn", "discard": "warn", "pause": "warn", "resume": "ok", "retry": "ok", "replay": "ok"}

func newHistory(p desk.Process) history {
	h := history{None: "Nothing was done to it yet.", All: "/audit?process=" + queryEscape(p.Line.Process)}
	for _, e := range p.History[:min(len(p.History), 20)] {
		h.Events = append(h.Events, newHappened(e))
	}
	return h
}

func newHappened(e desk.Event) happened {
	h := happened{Tone: eventTones[e.Action], Action: visible.Line(strings.ReplaceAll(e.Action, "_", " ")), At: newMoment(e.At), Reason: visible.Inline(visible.Start(e.Reason, 2000))}
	if e.Actor != "" {
		h.By = "by " + visible.Short(e.Actor)
	}
	var parts []string
	if e.RecordID != "" {
		parts = append(parts, "record "+visible.Short(e.RecordID))
	}
	if e.From != e.To && e.To != "" {
		parts = append(parts, "to "+visible.Short(e.To))
	}
	h.Detail = newLong(fmt.Sprintf("e-%d", e.ID), strings.Join(parts, " · "))
	return h
}

func newFacts(p desk.Process) []fact {
	facts := []fact{written("position", orDash(p.Position)), said("sequence", count(p.Sequence)), said("epoch", count(p.Epoch)), written("worker", orDash(p.Worker)), said("moved", orDash(momentOf(p.MovedAt).Text))}
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
			return "From creation to delivery, last " + took(*point.Latency)
		}
	}
	return "From creation to delivery: not known yet"
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
			offer.Main = i == 0 || offer.Verb == "resume"
			a.List = append(a.List, offer)
		}
	}
	return a
}
