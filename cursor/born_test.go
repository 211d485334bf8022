package cursor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
)

// TestCreate_BeginsPastTheNumbersOfACursorThatMayBeLost: a restored backup has nothing of a cursor
// that is younger. What shows that it was restored are the other cursors.
func TestCreate_BeginsPastTheNumbersOfACursorThatMayBeLost(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		others string
		later  bool
	}{
		"the first cursor of a database": {`SELECT`, false},
		"beside others of this database": {`INSERT INTO dispatch.cursor (process_name, position, epoch, sequence) VALUES ('other', '', 7, 70000)`, false},
		"one is of another cluster":      {`INSERT INTO dispatch.cursor (process_name, position, system_identifier) VALUES ('other', '', 17)`, true},
		"one is of another database":     {`INSERT INTO dispatch.cursor (process_name, position, database_oid) VALUES ('other', '', 17)`, true},
		"one is halted as restored":      {`INSERT INTO dispatch.cursor (process_name, position, state, failed_class) VALUES ('other', '', 'halted', 'restored')`, true},
		"one was restored":               {`INSERT INTO dispatch.cursor (process_name, position, epoch) VALUES ('other', '', 28000000000001)`, true},
	} {
		for by, create := range map[string]func(*cursor.Store) error{
			"a worker": func(s *cursor.Store) error {
				_, err := s.Create(t.Context(), "sms", "")
				return err
			},
			"an operator": func(s *cursor.Store) error {
				_, err := operator.New(s).Prepare(t.Context(), "sms", "p3", cursor.Running, "seek", cursor.Decision{Actor: "tom", Reason: "they have it"})
				return err
			},
		} {
			t.Run(name+", by "+by, func(t *testing.T) {
				t.Parallel()
				pool := database(t)
				s := store(t, pool, "a")
				exec(t, pool, test.others)
				require.NoError(t, create(s))
				made := look(t, s)
				lease := acquire(t, s)
				require.True(t, cursor.IsFirst(lease.Sequence()+1, lease.Epoch()))
				require.False(t, cursor.IsFirst(lease.Sequence()+2, lease.Epoch()))
				if !test.later {
					require.Zero(t, made.Sequence)
					require.Zero(t, made.Epoch)
					require.Empty(t, lease.History("p9"))
					return
				}
				requireLeap(t, 0, made.Sequence)
				require.GreaterOrEqual(t, made.Epoch, cursor.Epoch(1_000_000))
				require.NotEmpty(t, lease.History("p9"), "ids may come again")
			})
		}
	}
}
