package daemon

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
)

const (
	recordsTimeout = time.Minute // for a whole answer
	defaultRecords = 100
	maxRecords     = 1000
)

// recordsServer answers receivers that ask for records which they lack.
type recordsServer struct {
	tokens  [][sha256.Size]byte
	process map[string]*Records
	turn    chan struct{} // holds one element while a question is answered: records may be large
	log     *slog.Logger
}

// newRecordsServer returns nil if the file has no token.
func newRecordsServer(c RunConfig, pool *pgxpool.Pool, store *cursor.Store) (*recordsServer, error) {
	if c.Config.ListenToken == "" {
		return nil, nil
	}
	s := &recordsServer{process: map[string]*Records{}, turn: make(chan struct{}, 1), log: c.Logger}
	for _, token := range strings.Fields(c.Config.ListenToken) {
		s.tokens = append(s.tokens, sha256.Sum256([]byte(token)))
	}
	for _, p := range c.Config.Processes {
		var err error
		if s.process[p.Name], err = c.Config.records(p, pool, store); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *recordsServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if !s.knows(req.Header.Get("Authorization")) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "send Authorization: Bearer with the listen_token of the worker's file", http.StatusUnauthorized)
		return
	}
	records, ok := s.process[req.PathValue("process")]
	if !ok {
		http.Error(w, "the worker's file has no process of this name", http.StatusNotFound)
		return
	}
	ask, err := parseAsk(req.URL.RawQuery)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "another question is being answered: ask again", http.StatusTooManyRequests)
		return
	}
	ctx, cancel := context.WithTimeout(req.Context(), recordsTimeout)
	defer cancel()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(recordsTimeout)) // else the deadline of the server holds
	s.answer(ctx, w, records, ask)
}

// answer writes an answer, or the status that says why there is none. A line that is not the last one ends it after an
// error.
func (s *recordsServer) answer(ctx context.Context, w http.ResponseWriter, records *Records, ask Ask) {
	answer, err := records.Find(ctx, ask)
	switch {
	case err == nil:
		w.Header().Set("Content-Type", "application/x-ndjson")
		if err = answer.Write(ctx, w); err != nil {
			_ = writeJSON(w, map[string]string{"error": "the answer is not complete: see the worker's log, and ask again"})
		}
	case errors.Is(err, ErrRemoved):
		http.Error(w, err.Error(), http.StatusGone)
	case errors.Is(err, ErrNumber):
		http.Error(w, err.Error(), http.StatusConflict)
	case errors.Is(err, cursor.ErrUnknown):
		http.Error(w, "the process has not run yet", http.StatusNotFound)
	default:
		http.Error(w, "the records cannot be read now: see the worker's log, and ask again", http.StatusServiceUnavailable)
	}
	if err != nil {
		s.log.Warn("a receiver that asked for records did not get them", "process", records.process.Name, "after", ask.After, "err", err)
	}
}

// knows reports whether a request has a token of the file. It compares digests in constant time, so the time shows
// neither a token nor its length.
func (s *recordsServer) knows(authorization string) bool {
	scheme, token, _ := strings.Cut(authorization, " ")
	digest := sha256.Sum256([]byte(token))
	known := 0
	for _, one := range s.tokens {
		known |= subtle.ConstantTimeCompare(one[:], digest[:])
	}
	return known == 1 && strings.EqualFold(scheme, "Bearer")
}

// parseAsk reads the parameters of a question. It refuses what it does not know.
func parseAsk(raw string) (Ask, error) {
	ask := Ask{After: -1, Limit: defaultRecords}
	query, err := url.ParseQuery(raw)
	if err != nil {
		return ask, errors.New("the parameters cannot be read: write & between two of them, and %XX for characters that have a meaning in a URL")
	}
	for name, values := range query {
		value, err := values[0], error(nil)
		switch {
		case len(values) > 1:
			err = errors.New("give it once")
		case name == "after":
			if ask.After, err = strconv.ParseInt(value, 10, 64); err != nil || ask.After < 0 {
				err = errors.New("it must be a number between 0 and 9223372036854775807")
			}
		case name == "from":
			ask.From, err = ParsePlace(value)
		case name == "limit":
			if ask.Limit, err = strconv.Atoi(value); err != nil || ask.Limit < 1 || ask.Limit > maxRecords {
				err = fmt.Errorf("it must be a number between 1 and %d", maxRecords)
			}
		case name == "pruned":
			if ask.Pruned, err = strconv.ParseBool(value); err != nil {
				err = errors.New("it must be true or false")
			}
		default:
			err = errors.New("there is no such parameter: there are after, from, limit and pruned")
		}
		if err != nil {
			return ask, fmt.Errorf("parameter %s: %w", visible.Quoted(name), err)
		}
	}
	if ask.After < 0 {
		return ask, errors.New("the parameter after is missing: give the last sequence that you have, 0 for none")
	}
	return ask, nil
}

// checkToken returns what is wrong with the tokens of a file.
func checkToken(text string) error {
	tokens := strings.Fields(text)
	if len(tokens) == 0 {
		return errors.New("it is empty: give a token, or remove the key")
	}
	for _, token := range tokens {
		if len(token) < minToken || len(token) > maxToken {
			return fmt.Errorf("a token has between %d and %d characters, and this one has %d: openssl rand -hex 32 makes one", minToken, maxToken, len(token))
		}
		if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return errors.New("a token has a character that is not printable ASCII, so no header can have it")
		}
	}
	return nil
}

const (
	minToken = 24
	maxToken = 512
)
