package redis

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

const (
	codeNoScript     = "NOSCRIPT"
	codeNoPermission = "NOPERM"
	codeWrongType    = "WRONGTYPE"
)

const (
	fixLogin   = "correct user and password"
	fixCluster = "this is a node of a cluster, which the sink cannot use: name a server that has all keys"
	fixRights  = "give the user the rights that docs/sinks/redis.md lists"
)

// fixes are what an operator can do about what Redis says, by its code.
var fixes = map[string]string{
	"NOAUTH":         fixLogin,
	"WRONGPASS":      fixLogin,
	codeNoPermission: fixRights,
	codeWrongType:    "a key of that name is not a stream, or a key of state belongs to something else: correct stream or state, or delete the key",
	"MOVED":          fixCluster,
	"ASK":            fixCluster,
	"CROSSSLOT":      fixCluster,
	"ERR":            "if it is about a right, " + fixRights,
	"OOM":            "Redis is full: have consumers remove what they have read, set max_len, or raise maxmemory",
	"LOADING":        "Redis is reading its data: wait",
	"READONLY":       "this is a replica: name the master in url, or wait for the end of the failover",
	"MASTERDOWN":     "this is a replica without its master: name the master in url",
	"MISCONF":        "Redis cannot write its data to the disk: see its log",
	"BUSY":           "a script of another client runs: wait, or SCRIPT KILL",
	"NOREPLICAS":     "Redis has too few replicas (min-replicas-to-write): start them",
	codeNoScript:     "something removes scripts again and again (SCRIPT FLUSH): find it",

	"CLUSTERDOWN": fixCluster,
	"TRYAGAIN":    fixCluster,
}

var (
	errNoScript  = errors.New("the script is not loaded")
	errNoVerdict = errors.New("the server there does not answer as the script does")
)

const errLost = "records that Redis had acknowledged are lost: "

// lost are the ways to find out that the process has delivered records that Redis does not have. The first is no proof:
// numbers are also given to records that never went out.
var lost = map[string]string{
	"state": "it knows nothing of this process, and this is not the process's first number. Its data was removed (FLUSHALL, a restart without appendonly), " +
		"or the process delivered elsewhere until now. Nothing is lost if all records before this one were skipped or put aside, or if its keys were deleted after a `forget`",
	"stream": errLost + "the stream of the last entry was deleted, expired or evicted, and with it what no consumer had read",
	"back":   errLost + "an older copy of its data was put back, or a replica that lacked records became the master",
}

// code is the first word of what Redis says, if it is one of fixes; "" otherwise.
func code(err error) string {
	var word redis.Error
	if !errors.As(err, &word) {
		return ""
	}
	code, _, _ := strings.Cut(word.Error(), " ")
	if _, known := fixes[code]; !known {
		return ""
	}
	return code
}

// isAnswer reports whether an error is Redis's refusal. Nil is an answer that the script does not give.
func isAnswer(err error) bool {
	var word redis.Error
	return errors.As(err, &word) && !errors.Is(err, redis.Nil)
}

// refusesUs reports whether Redis's word is about our login, our rights, or the keys of the configuration: every record
// meets it, until somebody changes something. The script and deniesKey find a key that only one record has.
func refusesUs(err error) bool {
	switch code(err) {
	case "NOAUTH", "WRONGPASS", codeNoPermission, codeWrongType, "MOVED", "ASK", "CROSSSLOT":
		return true
	case "ERR": // in a script, a right that is missing has no code of its own
		return !redis.IsMaxClientsError(err)
	default:
		return false
	}
}

// ours marks an error as a refusal of us if Redis's word is one.
func ours(word, err error) error {
	if refusesUs(word) {
		return processor.Refused(err)
	}
	return err
}

// unsent is a failure before anything was sent.
func (s *Sink) unsent(err error) error {
	return ours(err, processor.Unreached(fmt.Errorf("append to %s: nothing was sent: %w%s", s, outcome.Known(err), nextStep(err))))
}

// notTaken is Redis's refusal, which says nothing about a record: any other one would have been refused, too.
func (s *Sink) notTaken(err error) error {
	return ours(err, processor.Unreached(fmt.Errorf("append to %s: %w%s", s, err, nextStep(err))))
}

// failed is a failure with a record on its way. The next attempt finds out what became of it.
func (s *Sink) failed(err error) error {
	return outcome.Unknown(fmt.Errorf("append to %s: Redis may have the record: %w%s", s, err, nextStep(err)))
}

// refusal is the word of the protocol, or of Redis's settings, on one record; the link is whole.
func (s *Sink) refusal(d processor.Delivery, err error) error {
	return outcome.AboutRecord(fmt.Errorf("append record %q to %s: %w", visible.Cut(d.ID), s, err))
}

func refused(format string, args ...any) error {
	return processor.Permanent(fmt.Errorf(format, args...))
}

// verdict is what the script says of a record; nil if it is there.
func (s *Sink) verdict(d processor.Delivery, word, detail string) error {
	restored := fmt.Sprintf("if the database was restored from a backup, stop the workers and say so: `ordered-dispatcher restored %s --reason …`, which moves the epoch on", visible.Shell(d.Process))
	there, _ := strconv.ParseInt(detail, 10, 64) // a number, but for what is no verdict
	switch word {
	case "appended", "taken":
		return nil
	case "type":
		if !s.stream.Fixed() {
			return s.refusal(d, refused("the key that stream makes of it is not a stream: correct stream, delete the key, or skip the record"))
		}
		return processor.Refused(s.notTaken(fmt.Errorf("%s: %s", codeWrongType, fixes[codeWrongType])))
	case "superseded":
		return s.notTaken(fmt.Errorf("it has records of epoch %d of process %q, and this worker has epoch %d: another one has taken over; %s", there, d.Process, d.Epoch, restored))
	case "claimed":
		return s.notTaken(fmt.Errorf("epoch %d of process %q was claimed by another worker, and no two workers of one database have the same: "+
			"the database was restored from a backup, or is a copy of another one; %s; give a copy another state", there, d.Process, restored))
	case "another":
		return processor.Refused(outcome.ReportedOnce(fmt.Errorf("append to %s: it has records up to %d of process %q, and none of the last ones is record %d: another one may have had that number; %s",
			s, there, d.Process, d.Sequence, restored)))
	case "lost":
		next := "Compare what it has with the table, and `seek` back to where records are missing; `retry` goes on without them"
		if kindOf(d, false) == replay {
			next = "The next record halts the process: decide there, and replay the dead letter once a record has gone out"
		}
		return processor.Refused(outcome.ReportedOnce(fmt.Errorf("append to %s: %s. %s", s, lost[detail], next)))
	case "early":
		return s.notTaken(errors.New("the record before it is not there any more: the next attempt finds out why"))
	default:
		return s.failed(errNoVerdict)
	}
}

// nextStep is the fix, as the end of a message.
func nextStep(err error) string {
	var (
		certificate *tls.CertificateVerificationError
		network     *net.OpError
	)
	switch fix := fixes[code(err)]; {
	case redis.IsMaxClientsError(err):
		return "; end connections of others, or raise maxclients"
	case fix != "":
		return "; " + fix
	case errors.As(err, &network) && network.Op == "dial":
		return "; start Redis there, or correct host and port in url"
	case errors.As(err, &certificate):
		return "; give the authority of the server's certificate as tls.ca, or the name in it as tls.server_name"
	default:
		return ""
	}
}
