package secret_test

import (
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/outcome"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/secret"
)

// answer is an error with the words of a receiver.
type answer struct{ words string }

func (a *answer) Error() string { return "code 7: " + a.words }

func guard(hide bool) secret.Guard {
	return secret.Guard{Secrets: secret.New("swordfish-9"), Hide: hide, Said: func(err error) (string, bool) {
		_, ok := err.(*answer)
		return "code 7: […]", ok
	}}
}

func TestGuard_HidesWordsWhereTheyAreSaidAndNowhereElse(t *testing.T) {
	t.Parallel()
	for _, words := range []string{"record", "1", "e", "code 7", ""} {
		said := &answer{words}
		err := guard(true).Error(fmt.Errorf("record 1: %w; correct it", said))
		require.EqualError(t, err, "record 1: code 7: […]; correct it")
		require.ErrorIs(t, err, said)
		require.EqualError(t, guard(true).Error(fmt.Errorf("again: %w", err)), "again: record 1: code 7: […]; correct it")
	}
}

func TestGuard_HidesEachOfSeveralAnswers(t *testing.T) {
	t.Parallel()
	one, two := &answer{"one is one"}, &answer{"one"}
	for _, err := range []error{
		errors.Join(one, two), errors.Join(two, one), errors.Join(one, errors.New("ours"), one), fmt.Errorf("a: %w (%w)", one, fmt.Errorf("b: %w", two)),
		outcome.Text(one), outcome.Known(outcome.Unknown(errors.Join(two, one))), fmt.Errorf("%[2]w, %[1]w", one, two),
	} {
		hidden := guard(true).Error(err).Error()
		require.NotContains(t, hidden, "one", err)
		require.Contains(t, hidden, secret.Hidden)
	}
}

// other has the words of its cause in other letters.
type other struct{ error }

func (o other) Error() string { return strconv.Quote(o.error.Error()) }

func (o other) Unwrap() error { return o.error }

func TestGuard_HidesAllOfATextThatMayHaveTheWordsInOtherLetters(t *testing.T) {
	t.Parallel()
	require.EqualError(t, guard(true).Error(fmt.Errorf("send: %w; correct it", other{&answer{"é\"x\""}})), "send: […]; correct it")
}

func TestGuard_HidesWhatPackagesOfGoQuote(t *testing.T) {
	t.Parallel()
	_, number := strconv.Atoi("WORDS")
	object, text := json.Unmarshal([]byte(`WORDS`), new(any)), json.Unmarshal([]byte(`{"WORDS": "WORDS"}`), &struct{ WORDS int }{})
	certificate := &x509.Certificate{DNSNames: []string{"WORDS.example"}}
	for _, err := range []error{number, object, text, certificate.VerifyHostname("ours.example")} {
		require.Error(t, err)
		hidden := guard(true).Error(fmt.Errorf("log in: %w", err)).Error()
		require.NotContains(t, hidden, "WORDS")
		require.NotContains(t, hidden, "'W'")
		require.Contains(t, hidden, "log in: ")
	}
}

func TestGuard_WhatIsQuotedIsAPartOfALineWithoutSecrets(t *testing.T) {
	t.Parallel()
	err := guard(false).Error(fmt.Errorf("send: %w; correct it", &answer{"no\nlevel=ERROR\u2028 swordfish-9"}))
	require.EqualError(t, err, "send: code 7: no level=ERROR [secret]; correct it")
	require.NoError(t, guard(false).Error(nil))
	plain := errors.New("ours")
	require.Equal(t, plain, guard(true).Error(plain))
}

func TestGuard_TakesRecordsOutOfTheWordsOfAReceiverAlone(t *testing.T) {
	t.Parallel()
	redact := strings.NewReplacer("card", secret.Hidden, "7", secret.Hidden).Replace
	err := fmt.Errorf("send card 7: %w; correct it", &answer{"no card 7 of swordfish-9"})
	require.EqualError(t, guard(false).Of(redact).Error(err), "send card 7: code 7: no […] […] of [secret]; correct it")
	require.EqualError(t, guard(true).Of(redact).Error(err), "send card 7: code 7: […]; correct it")
	_, number := strconv.Atoi("card")
	require.EqualError(t, guard(false).Of(redact).Error(number), `strconv.Atoi: parsing "[…]": invalid syntax`, "what Go quotes of an answer")
}

// command is a command to be pasted, with names that a server gave.
type command struct{ answer }

func (*command) Whole() {}

func TestGuard_ACommandIsShownWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	g := secret.Guard{Secrets: secret.New("swordfish-9"), Said: func(err error) (string, bool) {
		_, ok := err.(*command)
		return "code 7: […]", ok
	}}
	for _, g := range []secret.Guard{g, g.Of(strings.ToUpper)} {
		require.EqualError(t, g.Error(fmt.Errorf("run %w", &command{answer{"edit 'orders.>'"}})), "run code 7: edit 'orders.>'")
		require.EqualError(t, g.Error(fmt.Errorf("run %w", &command{answer{"edit 'swordfish-9.orders.>'"}})), "run code 7: […]")
		require.EqualError(t, g.Error(fmt.Errorf("run %w", &command{answer{"edit '" + strings.Repeat("x", 33<<10) + "'"}})), "run code 7: […]")
	}
}
