package exec

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/child"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

// answer is the child's answer to one attempt of a record.
type answer struct {
	DedupKey   *string `json:"dedup_key"`
	Attempt    *int    `json:"attempt"`
	OK         bool    `json:"ok"`
	Error      string  `json:"error"`
	Permanent  bool    `json:"permanent"`
	RetryAfter float64 `json:"retry_after"` // seconds
}

// Errors of a line that is not an answer to the record. None of them quotes it.
var (
	errNoAnswer  = errors.New("it wrote a line that is not an answer; an answer is, for example, {\"dedup_key\": \"…\", \"attempt\": 1, \"ok\": true}")
	errSaysNo    = errors.New("it refused the record")
	errOutOfTurn = errors.New("it answered another record, or another attempt, out of turn")
)

// maxRetryAfter is the longest delay that a child may ask for, in seconds.
const maxRetryAfter = 365 * 24 * 3600

// parseAnswer reads a line as the answer to a record.
func parseAnswer(line []byte, d processor.Delivery) (answer, error) {
	var a answer
	if err := json.Unmarshal(line, &a); err != nil || a.DedupKey == nil || a.Attempt == nil || a.OK == (a.Error != "") {
		return a, errNoAnswer
	}
	if *a.DedupKey != spelled(d.DedupKey()) || *a.Attempt != d.Attempt {
		return a, errOutOfTurn
	}
	return a, nil
}

// spelled returns a text in the form that JSON can hold.
func spelled(text string) (s string) {
	encoded, _ := json.Marshal(text) // strings always encode
	_ = json.Unmarshal(encoded, &s)
	return s
}

// failure returns the error of an answer to the record; nil if the child has it.
func (s *Sink) failure(a answer, d processor.Delivery) error {
	if a.OK {
		return nil
	}
	err := errSaysNo
	if !s.config.HideAnswers {
		err = fmt.Errorf("its error: %s", visible.Start(s.secrets.Quote(a.Error, d.Redact), child.MaxQuote))
	}
	switch {
	case a.Permanent:
		return processor.Permanent(err)
	case a.RetryAfter > 0:
		return processor.RetryAfter(err, time.Duration(math.Min(a.RetryAfter, maxRetryAfter)*float64(time.Second)))
	default:
		return err
	}
}
