package console

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// panel shows what an order would do, with the form that asks for the reason; or what was done, without a form.
type panel struct {
	Step      int // 1: the preview; 2: it is done
	Title     string
	Sentences [][]words
	Problem   []words
	Refused   bool
	Records   []shownRecord
	More      string
	Form      *form
	Back      string
}

type shownRecord struct {
	ID, Position long
	At           moment
}

// form repeats the order and what its preview expects.
type form struct {
	URL, Back, Tone, Button string
	Hidden                  []hidden
	Checks                  []check
	Asks, Required          bool
}

type hidden struct{ Name, Value string }

type check struct{ Name, Text string }

// titles name the verbs, before and after.
var titles = map[desk.Verb][2]string{
	desk.Retry: {"Retry", "Retried"}, desk.Skip: {"Skip", "Skipped"}, desk.Seek: {"Seek", "Moved"}, desk.Pause: {"Pause", "Paused"},
	desk.Resume: {"Resume", "Resumed"}, desk.Replay: {"Replay", "Replayed"}, desk.Discard: {"Discard", "Discarded"},
}

// orderOf reads an order from a form.
func orderOf(r *http.Request, process string) (desk.Order, error) {
	o := desk.Order{Verb: desk.Verb(r.PostFormValue("verb")), Process: process, Fenced: r.PostFormValue("fenced") == "yes", Pruned: r.PostFormValue("pruned") == "yes"}
	if _, known := titles[o.Verb]; !known {
		return o, errors.New("the form has no decision: go back to the page and try again")
	}
	if o.Verb == desk.Seek {
		kind := r.PostFormValue("to")
		o.To = &desk.Target{Kind: desk.TargetKind(kind), Value: r.PostFormValue("at-" + kind)}
	}
	for _, text := range r.PostForm["letter"] {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return o, errors.New("the form has a letter that is not a number: go back to the page and try again")
		}
		o.Letters = append(o.Letters, desk.IDText(id))
	}
	return o, nil
}

// repeat writes an order as hidden fields.
func repeat(o desk.Order, csrf string) []hidden {
	fields := []hidden{{"csrf", csrf}, {"verb", string(o.Verb)}, {"process", valueOf(o.Process)}}
	if o.To != nil {
		fields = append(fields, hidden{"to", string(o.To.Kind)}, hidden{"at-" + string(o.To.Kind), o.To.Value})
	}
	if o.Fenced {
		fields = append(fields, hidden{"fenced", "yes"})
	}
	if o.Pruned {
		fields = append(fields, hidden{"pruned", "yes"})
	}
	for _, id := range o.Letters {
		fields = append(fields, hidden{"letter", strconv.FormatInt(int64(id), 10)})
	}
	return fields
}

// room is the page on which an order is decided: its addresses.
type room struct{ preview, decide, back string }

// preview asks the desk what an order would do, and makes the panel. The status is that of the page.
func (c *Console) preview(r *http.Request, process string, in room) (*panel, int) {
	o, err := orderOf(r, process)
	if err != nil {
		return refusal(&desk.Error{Kind: desk.KindUsage, Text: err.Error()}, o, in, ""), http.StatusBadRequest
	}
	if !who(r).Operate {
		return refusal(&desk.Error{Kind: desk.KindRefused, Text: "you may look and not decide"}, desk.Order{}, in, ""), http.StatusForbidden
	}
	p, err := c.desk.Preview(r.Context(), o)
	if err != nil {
		return refusal(err, o, in, who(r).CSRF), kindOf(err).Status()
	}
	out := &panel{Step: 1, Title: titles[o.Verb][0] + " " + visible.Short(o.Process) + "?", Sentences: sentences(p.Text), Problem: newProse(p.Problem), Back: in.back}
	for i, record := range p.Records {
		id := strconv.Itoa(i)
		out.Records = append(out.Records, shownRecord{newLong("r-"+id, record.ID), newLong("rp-"+id, record.Position), momentOf(record.CreatedAt)})
	}
	if left := p.Total - int64(len(p.Records)); left > 0 && len(p.Records) > 0 {
		out.More = "and " + count(left) + " more"
		if p.Capped {
			out.More += ", or yet more"
		}
	}
	if !p.Changes {
		out.Sentences = append(out.Sentences, newProse("There is nothing to do."))
		return out, http.StatusOK
	}
	out.Form = &form{URL: in.decide, Back: in.back, Button: titles[o.Verb][0], Tone: "main", Asks: true, Required: p.NeedsReason, Hidden: append(repeat(o, who(r).CSRF), hidden{"expect", p.Expect})}
	if o.Verb.NeedsReason() {
		out.Form.Tone = "danger"
	}
	return out, http.StatusOK
}

// decide carries out an order, and makes the panel that says what was done.
func (c *Console) decide(r *http.Request, process string, in room) (*panel, int) {
	o, err := orderOf(r, process)
	if err != nil {
		return refusal(&desk.Error{Kind: desk.KindUsage, Text: err.Error()}, o, in, ""), http.StatusBadRequest
	}
	if !who(r).Operate {
		return refusal(&desk.Error{Kind: desk.KindRefused, Text: "you may look and not decide"}, desk.Order{}, in, ""), http.StatusForbidden
	}
	d, err := c.desk.Decide(r.Context(), o, desk.Approval{Reason: strings.TrimSpace(r.PostFormValue("reason")), Expect: r.PostFormValue("expect"), Actor: who(r).Name})
	if err != nil {
		return refusal(err, o, in, who(r).CSRF), kindOf(err).Status()
	}
	out := &panel{Step: 2, Title: titles[o.Verb][1], Sentences: sentences(d.Text), Back: in.back}
	if d.Failed != "" {
		out.Problem = newProse(d.Failed)
	}
	return out, http.StatusOK
}

// refusal says why an order was refused. Where more of the operator's word would allow it, it asks for that.
func refusal(err error, o desk.Order, in room, csrf string) *panel {
	out := &panel{Step: 1, Title: "Nothing was changed", Problem: newProse(err.Error()), Refused: true, Back: in.back}
	kind := kindOf(err)
	switch kind {
	case desk.KindUncertain:
		out.Title = "It may have been done"
	case desk.KindMoved:
		out.Title = "Something has changed since"
		out.Sentences = [][]words{newProse("The preview does not hold any more, so nothing was done. Look at a new one.")}
		out.Form = &form{URL: in.preview, Back: in.back, Button: "New preview", Tone: "main", Hidden: repeat(o, csrf)}
	case desk.KindOldPrimary:
		out.Form = &form{URL: in.preview, Back: in.back, Button: "Preview again", Hidden: repeat(o, csrf),
			Checks: []check{{"fenced", "I have made sure that this server is the only primary"}}}
	case desk.KindPruned:
		out.Form = &form{URL: in.preview, Back: in.back, Button: "Preview again", Hidden: repeat(o, csrf),
			Checks: []check{{"pruned", "I accept that retention has removed rows after that place"}}}
	}
	return out
}

// kindOf is the kind of an error of the desk; "" for another error.
func kindOf(err error) desk.Kind {
	var e *desk.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// sentences shows a text as paragraphs.
func sentences(text string) [][]words {
	var all [][]words
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, newProse(line))
		}
	}
	return all
}

func (c *Console) processPreview(w http.ResponseWriter, r *http.Request) {
	shown, status := c.preview(r, r.PathValue("name"), processRoom(r))
	c.showProcess(w, r, status, shown)
}

func (c *Console) processDecide(w http.ResponseWriter, r *http.Request) {
	shown, status := c.decide(r, r.PathValue("name"), processRoom(r))
	c.showProcess(w, r, status, shown)
}

func processRoom(r *http.Request) room {
	base := processURL(r.PathValue("name"))
	return room{preview: base + "/preview", decide: base + "/decide", back: base}
}

func queryEscape(text string) string { return url.QueryEscape(text) }
