package prove

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Slot is a program that reads the write-ahead log through a replication slot, such as Debezium or Sequin. It confirms
// to the slot what it has delivered.
type Slot struct {
	// Program is its name, for people.
	Program string
	Slot    string
	// LSN is the place that the program has stored elsewhere; "" for the one of the slot alone.
	LSN string
	// Held, if set, finds out whether the program may hold records that it has confirmed and not delivered. It returns
	// what has to be true and is not known; "" if it holds none.
	held func(ctx context.Context, m *move) (string, error)
}

// Debezium returns the connector with a slot. lsn is the lsn_commit of the offset that the connector has stored; "" if
// it is not known.
func Debezium(slot, lsn string) Slot { return Slot{Program: "Debezium", Slot: slot, LSN: lsn} }

// Sequin returns Sequin with a slot. It confirms a record that it could not deliver as soon as its own database has it.
func Sequin(slot string) Slot { return Slot{Program: "Sequin", Slot: slot, held: heldBySequin} }

// Name implements Old.
func (s Slot) Name() string { return fmt.Sprintf("%s with the slot %q", s.Program, s.Slot) }

// Stop implements Old.
func (s Slot) Stop() string {
	return fmt.Sprintf("%s, so that the slot %q is no longer active", s.Program, s.Slot)
}

// A slot is compared as it is. Every transaction before catalog_xmin had ended when the program confirmed.
const slotSQL = `/* adopt.slot */
SELECT
	active,
	slot_type = 'logical' AND database = current_database(),
	coalesce(greatest(confirmed_flush_lsn, nullif($2, '')::pg_lsn)::text, ''),
	coalesce(greatest(confirmed_flush_lsn, nullif($2, '')::pg_lsn) >= $3::pg_lsn, false),
	coalesce(catalog_xmin::text, '')
FROM pg_replication_slots
WHERE slot_name = $1`

type slotState struct {
	active, ours, caughtUp bool
	confirmed, xmin        string
}

// delivered proves one of two things. The rows before the fence are in the log up to the place where it ends now. Once
// the program has confirmed that place, it has delivered them all. Otherwise it has delivered the rows of the
// transactions that had ended before the slot's catalog_xmin.
func (s Slot) delivered(ctx context.Context, m *move) (known, error) {
	var end string
	err := m.ask(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, "/* adopt.end */ SELECT pg_current_wal_insert_lsn()::text").Scan(&end)
	})
	if err != nil {
		return known{}, err
	}
	state, err := s.await(ctx, m, end)
	if err != nil {
		return known{}, err
	}
	k := known{unwatched: true} // a program that runs loses nothing: it only sends more that comes again
	if s.held != nil {
		if k.unproven, err = s.held(ctx, m); err != nil {
			return known{}, err
		}
	}
	if state.active {
		k.notes = append(k.notes, fmt.Sprintf("the slot is active, so %s still delivers: all of that is sent again", s.Program))
	}
	switch {
	case state.caughtUp:
		k.everything = true
	case state.xmin == "":
		k.condition = "false"
		k.earlier = fmt.Sprintf("%s has confirmed the log up to %s, and it goes to %s. The slot does not show which transactions had ended",
			s.Program, state.confirmed, end)
	default:
		k.condition = endedBefore(state.xmin)
		k.earlier = fmt.Sprintf("%s has confirmed the log up to %s, and it goes to %s. So only the rows of transactions before %s, the oldest that the slot needs, are proven",
			s.Program, state.confirmed, end, state.xmin)
	}
	return k, nil
}

// endedBefore is true for the rows of older transactions.
func endedBefore(xmin string) string { return fmt.Sprintf("age(xmin) > age('%s'::xid)", xmin) }

// await asks for the slot until the program has confirmed a place of the log, or the wait is over. A program that does
// not run confirms nothing.
func (s Slot) await(ctx context.Context, m *move, end string) (state slotState, err error) {
	deadline := time.Now().Add(m.Wait)
	for {
		err := m.ask(ctx, func(ctx context.Context, tx pgx.Tx) error {
			return tx.QueryRow(ctx, slotSQL, s.Slot, s.LSN, end).Scan(&state.active, &state.ours, &state.confirmed, &state.caughtUp, &state.xmin)
		})
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return state, unlike("there is no replication slot %q", s.Slot)
		case err != nil:
			return state, fmt.Errorf("read the slot: %w", err)
		case !state.ours:
			return state, unlike("the slot %q is not a logical slot of this database", s.Slot)
		case state.caughtUp || !state.active || time.Now().After(deadline):
			return state, nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return state, ctx.Err()
		}
	}
}

// heldBySequin looks for the tables in which Sequin keeps records that it could not deliver. They may be in another
// database.
func heldBySequin(ctx context.Context, m *move) (unproven string, err error) {
	err = m.ask(ctx, func(ctx context.Context, tx pgx.Tx) error {
		seen := 0
		for _, name := range []string{"sequin_streams.consumer_events", "sequin_streams.consumer_records"} {
			var there bool
			if err := tx.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", name).Scan(&there); err != nil {
				return err
			}
			if !there {
				continue
			}
			seen++
			var held int64
			if err := tx.QueryRow(ctx, "/* adopt.sequin */ SELECT count(*) FROM (SELECT FROM "+name+" WHERE state::text <> 'acked' LIMIT 100000) held").Scan(&held); err != nil {
				return fmt.Errorf("read the records that Sequin holds: %w", err)
			}
			if held > 0 {
				unproven = joined(unproven, fmt.Sprintf("Sequin delivers the %d records that %s holds", held, name))
			}
		}
		if seen == 0 {
			unproven = "Sequin holds no record that it could not deliver. It keeps those in its own database, in sequin_streams.consumer_events and " +
				"sequin_streams.consumer_records, and this is another one"
		}
		return nil
	})
	return unproven, err
}
