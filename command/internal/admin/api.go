package admin

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/admin/visitor"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

// openAPI describes the API.
//
//go:embed openapi.yaml
var openAPI []byte

// Kinds of errors besides those of package desk.
const (
	kindUsage     = string(desk.KindUsage)
	kindUnknown   = string(desk.KindUnknown)
	kindBusy      = string(desk.KindBusy)
	kindLogin     = "login"
	kindForbidden = "forbidden"
)

// api answers with JSON what package desk offers.
type api struct {
	desk *desk.Desk
	log  *slog.Logger
}

// answer is what a route answers, or why it does not.
type answer func(r *http.Request) (any, error)

func newAPI(d *desk.Desk, log *slog.Logger) http.Handler {
	a := api{d, log}
	mux := http.NewServeMux()
	for pattern, answer := range map[string]answer{
		"GET /api/v1/me":                  a.me,
		"GET /api/v1/fleet":               a.fleet,
		"GET /api/v1/processes/{process}": a.process,
		"POST /api/v1/tail":               a.tail,
		"POST /api/v1/find":               a.find,
		"POST /api/v1/dead-letters":       a.letters,
		"GET /api/v1/dead-letters/{id}":   a.letter,
		"GET /api/v1/audit":               a.audit,
		"GET /api/v1/doctor":              a.doctor,
		"POST /api/v1/preview":            a.preview,
		"POST /api/v1/decide":             a.decide,
	} {
		mux.Handle(pattern, a.serve(answer))
	}
	mux.HandleFunc("GET /api/v1/events", a.events)
	mux.HandleFunc("GET /api/v1/openapi.yaml", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(openAPI)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeError(w, http.StatusNotFound, kindUnknown, "there is nothing here: see /api/v1/openapi.yaml")
	})
	return mux
}

func (a api) serve(answer answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		result, err := answer(r)
		if err == nil {
			a.write(w, result)
			return
		}
		kind, text := desk.KindAway, "the database cannot be asked now: see the log, and try again"
		var known *desk.Error
		if errors.As(err, &known) {
			kind, text = known.Kind, known.Text
		} else {
			a.log.Warn("the API has no answer", "path", r.URL.Path, "err", err)
		}
		status := kind.Status()
		if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		writeError(w, status, string(kind), text)
	})
}

func (a api) write(w http.ResponseWriter, result any) {
	var b bytes.Buffer
	if err := json.NewEncoder(visible.JSON(&b)).Encode(result); err != nil {
		a.log.Error("an answer of the API cannot be written as JSON", "err", err)
		writeError(w, http.StatusInternalServerError, string(desk.KindAway), "the answer cannot be written: see the log")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b.Bytes())
}

// writeError answers with why there is no other answer.
func writeError(w http.ResponseWriter, status int, kind, text string) {
	var b bytes.Buffer
	_ = json.NewEncoder(visible.JSON(&b)).Encode(map[string]any{"error": map[string]string{"kind": kind, "text": text}}) // texts alone: this cannot fail
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

// badRequest is the error of a question that the API cannot read.
func badRequest(text string) error { return &desk.Error{Kind: desk.KindUsage, Text: text} }

// read reads the body. It refuses what it does not know.
func read(r *http.Request, into any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return badRequest("the body is not what the API takes" + misread(err) + ": see /api/v1/openapi.yaml")
	}
	if decoder.More() {
		return badRequest("the body has more than one value")
	}
	return nil
}

// misread names the field that the API does not take, where it is known. A value of the body is never shown.
func misread(err error) string {
	var wrong *json.UnmarshalTypeError
	switch name, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); {
	case unknown:
		return ": it has no field " + visible.Line(name)
	case errors.As(err, &wrong) && wrong.Field != "":
		return ": the field " + visible.Line(wrong.Field) + " cannot be of the type " + wrong.Value
	default:
		return ""
	}
}

// parameters reads the query. It refuses what is not known.
func parameters(r *http.Request, known ...string) (url.Values, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badRequest("the parameters cannot be read: write & between two of them")
	}
	for name, values := range query {
		if !slices.Contains(known, name) {
			return nil, badRequest("there is no parameter " + visible.Quoted(name) + ": there are " + strings.Join(known, ", "))
		}
		if len(values) > 1 {
			return nil, badRequest("give the parameter " + name + " once")
		}
	}
	return query, nil
}

func sight(r *http.Request) desk.Sight {
	if visitor.Of(r.Context()).Payloads {
		return desk.Full
	}
	return desk.Masked
}

// Me is what the caller may do.
type Me struct {
	Name     string `json:"name"`
	Read     bool   `json:"read"`
	Operate  bool   `json:"operate"`
	Payloads bool   `json:"payloads"`
	CSRF     string `json:"csrf"`
}

func (a api) me(r *http.Request) (any, error) {
	v := visitor.Of(r.Context())
	return Me{v.Name, v.Read, v.Operate, v.Payloads, v.CSRF}, nil
}

func (a api) fleet(r *http.Request) (any, error) { return a.desk.Fleet(r.Context()) }

func (a api) process(r *http.Request) (any, error) {
	return a.desk.Process(r.Context(), r.PathValue("process"), sight(r))
}

func (a api) tail(r *http.Request) (any, error) {
	var ask struct {
		Process string `json:"process"`
		After   string `json:"after"`
		Limit   int    `json:"limit"`
	}
	if err := read(r, &ask); err != nil {
		return nil, err
	}
	if ask.Limit < 0 {
		return nil, badRequest("limit must be a number between 1 and " + strconv.Itoa(desk.MaxTail))
	}
	if ask.Limit == 0 {
		ask.Limit = desk.MaxTail
	}
	return a.desk.Tail(r.Context(), ask.Process, ask.After, ask.Limit)
}

func (a api) find(r *http.Request) (any, error) {
	var s desk.Search
	if err := read(r, &s); err != nil {
		return nil, err
	}
	return a.desk.Find(r.Context(), s, sight(r))
}

func (a api) letters(r *http.Request) (any, error) {
	var ask struct {
		Process  string `json:"process"`
		Error    string `json:"error"`
		Resolved bool   `json:"resolved"`
		Limit    int    `json:"limit"`
	}
	if err := read(r, &ask); err != nil {
		return nil, err
	}
	return a.desk.Letters(r.Context(), desk.LettersAsk{Process: ask.Process, Error: ask.Error, Resolved: ask.Resolved, Limit: ask.Limit})
}

func (a api) letter(r *http.Request) (any, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return nil, badRequest("the id of a dead letter is a number")
	}
	return a.desk.Letter(r.Context(), id, sight(r))
}

func (a api) audit(r *http.Request) (any, error) {
	query, err := parameters(r, "process", "actor", "action", "decisions", "before", "limit")
	if err != nil {
		return nil, err
	}
	ask := desk.AuditAsk{Process: query.Get("process"), Actor: query.Get("actor"), Action: query.Get("action")}
	if text := query.Get("decisions"); text != "" {
		if ask.Decisions, err = strconv.ParseBool(text); err != nil {
			return nil, badRequest("decisions must be true or false")
		}
	}
	if text := query.Get("before"); text != "" {
		if ask.Before, err = strconv.ParseInt(text, 10, 64); err != nil || ask.Before < 1 {
			return nil, badRequest("before must be the id of an event")
		}
	}
	if text := query.Get("limit"); text != "" {
		if ask.Limit, err = strconv.Atoi(text); err != nil || ask.Limit < 1 || ask.Limit > desk.MaxEvents {
			return nil, badRequest("limit must be a number between 1 and " + strconv.Itoa(desk.MaxEvents))
		}
	}
	return a.desk.Audit(r.Context(), ask, sight(r))
}

func (a api) doctor(r *http.Request) (any, error) { return a.desk.Doctor(r.Context()) }

func (a api) preview(r *http.Request) (any, error) {
	var o desk.Order
	if err := read(r, &o); err != nil {
		return nil, err
	}
	return a.desk.Preview(r.Context(), o)
}

func (a api) decide(r *http.Request) (any, error) {
	var ask struct {
		Order  desk.Order `json:"order"`
		Reason string     `json:"reason"`
		Expect string     `json:"expect"`
	}
	if err := read(r, &ask); err != nil {
		return nil, err
	}
	return a.desk.Decide(r.Context(), ask.Order, desk.Approval{Reason: ask.Reason, Expect: ask.Expect, Actor: visitor.Of(r.Context()).Name})
}

// events sends what one look has shown of the fleet, or of a process, after each look.
func (a api) events(w http.ResponseWriter, r *http.Request) {
	query, err := parameters(r, "process")
	if err != nil {
		writeError(w, http.StatusBadRequest, kindUsage, err.Error())
		return
	}
	process := query.Get("process")
	s, err := begin(w)
	if err != nil {
		return
	}
	ticks := a.desk.Watch(r.Context(), process)
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for err == nil {
		select {
		case <-r.Context().Done():
			return
		case _, open := <-ticks:
			if !open {
				return
			}
			err = a.sendLook(s, r, process)
		case <-beat.C:
			err = s.write(": still here\n\n")
		}
	}
}

func (a api) sendLook(s stream, r *http.Request, process string) error {
	var result any
	var err error
	event := "fleet"
	if process == "" {
		result, err = a.desk.Fleet(r.Context())
	} else {
		event = "process"
		result, err = a.desk.Process(r.Context(), process, sight(r))
	}
	if err != nil {
		event, result = "problem", map[string]string{"text": err.Error()}
	}
	text, err := json.Marshal(result)
	if err != nil {
		return err
	}
	return s.send(event, visible.EscapeJSON(text))
}
