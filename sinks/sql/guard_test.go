package sql

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/processor"
)

func TestGuard_HidesThePasswordAndOnDemandAllThatTheServerSays(t *testing.T) {
	t.Parallel()
	address, err := pgx.ParseConfig("postgres://u:pass-word-9@h/d")
	require.NoError(t, err)
	failure := fmt.Errorf("apply: %w; correct it", &serverError{&pgconn.PgError{Severity: "ERROR", Code: "P0001"}, "no pass%2Dword-9 nor 706173732d776f72642d39"})
	require.EqualError(t, newGuard(Config{}, address).Error(failure), "apply: ERROR: no [secret] nor [secret] (SQLSTATE P0001); correct it")
	require.EqualError(t, newGuard(Config{HideAnswers: true}, address).Error(failure), "apply: ERROR: […] (SQLSTATE P0001); correct it")
	tag := fmt.Errorf("target: %w", &tagError{pgconn.NewCommandTag("NO")})
	require.EqualError(t, newGuard(Config{}, address).Error(tag), "target: it answered COMMIT with NO")
	require.EqualError(t, newGuard(Config{HideAnswers: true}, address).Error(tag), "target: it answered COMMIT with something else")
}

// A secret that has a word of the record's in it is taken out whole.
func TestGuard_ASecretThatSharesAWordWithTheRecordIsHidden(t *testing.T) {
	t.Parallel()
	s, err := New(Config{Statements: []string{"SELECT @id"}, Secrets: []string{"tok-4711-abcdefghTOPSECRET"}})
	require.NoError(t, err)
	d := processor.Delivery{Record: processor.Record{ID: "1", Payload: []byte(`{"n": 4711}`)}}
	require.NotContains(t, s.Broken(d, &pgconn.PgError{Code: "23514", Message: "bad token tok-4711-abcdefghTOPSECRET here"}).Error(), "TOPSECRET")
}
