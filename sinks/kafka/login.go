package kafka

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const (
	mechanismPlain  = "PLAIN"
	mechanismSHA256 = "SCRAM-SHA-256"
	mechanismSHA512 = "SCRAM-SHA-512"
)

// maxIterations bounds how often a broker makes the client hash the password. Kafka takes 4,096 to 16,384. While the
// client hashes it does not look at the time, so with a larger number no time-out would end the call.
const maxIterations = 1_000_000

func (s SASL) mechanism() sasl.Mechanism {
	switch s.Mechanism {
	case mechanismSHA256:
		return bounded{scram.Auth{User: s.User, Pass: s.Password}.AsSha256Mechanism()}
	case mechanismSHA512:
		return bounded{scram.Auth{User: s.User, Pass: s.Password}.AsSha512Mechanism()}
	default:
		return plain.Auth{User: s.User, Pass: s.Password}.AsMechanism()
	}
}

// bounded is a SCRAM mechanism that does at most maxIterations.
type bounded struct{ sasl.Mechanism }

// Authenticate begins a login. The client calls it for each connection.
func (b bounded) Authenticate(ctx context.Context, host string) (sasl.Session, []byte, error) {
	session, first, err := b.Mechanism.Authenticate(ctx, host)
	if err != nil {
		return nil, nil, err
	}
	return &boundedSession{session: session}, first, nil
}

type boundedSession struct {
	session sasl.Session
	hashed  bool // the broker's first message was answered
}

// Challenge answers a message of the broker. The client calls it for each one.
func (b *boundedSession) Challenge(message []byte) (bool, []byte, error) {
	if !b.hashed {
		b.hashed = true
		if err := checkIterations(message); err != nil {
			return false, nil, err
		}
	}
	done, answer, err := b.session.Challenge(message)
	if err != nil {
		return false, nil, fmt.Errorf("the login by SCRAM failed: %w", &quoting{err})
	}
	return done, answer, nil
}

// checkIterations reads a first message, r=nonce,s=salt,i=count, as the client does.
func checkIterations(message []byte) error {
	parts := bytes.Split(message, []byte(","))
	if len(parts) < 3 {
		return nil // no such message: the client refuses it
	}
	text := string(bytes.TrimPrefix(parts[2], []byte("i=")))
	if n, err := strconv.Atoi(text); err == nil && n > maxIterations {
		return fmt.Errorf("the broker asks for %d iterations of SCRAM, and the sink does at most %d; check which server answers at that address", n, maxIterations)
	}
	return nil
}
