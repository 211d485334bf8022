package webhook

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks/internal/wire"
)

// contract returns what a receiver that follows docs/wire.md says about the cursor, or "". Its answer has what it has
// noted, and that must contradict the delivery. A receiver that does not know the contract answers 409 and 428 about
// the record, and may echo its headers.
func (s *Sink) contract(d processor.Delivery, resp *http.Response) string {
	switch resp.StatusCode {
	case http.StatusConflict:
		if known, ok := number(resp.Header, wire.HeaderVersion); ok && strconv.FormatInt(known, 10) != wire.Version {
			return fmt.Sprintf("the receiver knows version %s of the contract, and this is version %s: upgrade the one that is older", s.shown(known), wire.Version)
		}
		if origin := resp.Header.Get(wire.HeaderOrigin); origin != "" && d.Origin != "" && origin != escape(d.Origin) {
			return fmt.Sprintf("the receiver has records of another cursor under the name %s: rename this process if both send, or else have the receiver accept the origin %s (AcceptOrigin of package inbox)",
				visible.Quoted(d.Process), visible.Quoted(d.Origin))
		}
		if seen, ok := number(resp.Header, wire.HeaderEpoch); ok && seen > int64(d.Epoch) {
			return fmt.Sprintf("the receiver has seen epoch %s, and this one is %d: another worker has taken over, or the database was set back, and then `ordered-dispatcher restored %s` goes on past it",
				s.shown(seen), d.Epoch, visible.Shell(d.Process))
		}
	case http.StatusPreconditionRequired:
		if last, ok := number(resp.Header, wire.HeaderSequence); ok && last < d.Sequence-1 {
			return fmt.Sprintf("the receiver has number %s, this one is %d, and it wants those between: `seek` to before the last record that it has, let it apply what `ordered-dispatcher show %s --after %[1]s -c FILE` prints, or have it accept the gap through %[4]d (AcceptGap of package inbox)",
				s.shown(last), d.Sequence, visible.Shell(d.Process), d.Sequence-1)
		}
	}
	return ""
}

// number returns the value of a header that is a number from 0 on.
func number(header http.Header, name string) (value int64, ok bool) {
	n, err := strconv.ParseUint(header.Get(name), 10, 63)
	return int64(n), err == nil
}

// shown returns a number that a receiver sent. It may have echoed a secret that is one.
func (s *Sink) shown(n int64) string { return s.secrets.clean(strconv.FormatInt(n, 10), maxExcerpt) }
