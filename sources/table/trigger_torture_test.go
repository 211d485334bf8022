package table

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// What a trigger's function is put together from. STAMP is a value far from the
// default.
var (
	triggerNoise = []string{"", "RAISE DEBUG 'a -- b';", "RAISE DEBUG 'it''s /* ';", "-- NEW.note := 1;\n", "/* ; /* it's */ */",
		"PERFORM $q$ ' -- $q$;", `RAISE DEBUG E'\' -- ';`, "IF TG_OP = 'INSERT' THEN PERFORM 1; END IF;", "NEW.note := 'x';", "PERFORM to_jsonb(NEW);", `PERFORM 1 AS "--";`}
	triggerForms = []string{
		"NEW.created_at := STAMP;", "NEW . created_at=STAMP;", `"new"."created_at":=STAMP;`, "NEW.Created_At = (STAMP);", "f.NEW.created_at := STAMP;",
		"SELECT STAMP INTO NEW.created_at;", "SELECT INTO NEW.created_at STAMP;", "SELECT 1, STAMP INTO STRICT i, NEW.created_at;",
		"EXECUTE 'VALUES($1)' INTO NEW.created_at USING STAMP;", "INSERT INTO app.other VALUES (1) RETURNING STAMP INTO NEW.created_at;",
		"OPEN c FOR SELECT STAMP; FETCH c INTO NEW.created_at; CLOSE c;",
		"r := NEW; r.created_at := STAMP; RETURN r;", "RETURN jsonb_populate_record(NEW, jsonb_build_object('created_at', STAMP));",
		"NEW := jsonb_populate_record(NEW, jsonb_build_object('created_at', STAMP));", "SELECT (jsonb_populate_record(NEW, jsonb_build_object('created_at', STAMP))).* INTO NEW;",
		"CALL app.stamp(NEW.created_at);", "FOR NEW.created_at IN SELECT STAMP LOOP EXIT; END LOOP;", "FOR i, NEW.created_at IN SELECT 1, STAMP LOOP EXIT; END LOOP;",
		"FOREACH NEW.created_at IN ARRAY ARRAY[STAMP] LOOP EXIT; END LOOP;", "DECLARE n ALIAS FOR NEW; BEGIN n.created_at := STAMP; END;",
		"<<b>> BEGIN IF true THEN NEW.created_at:=STAMP; END IF; END b;", "CASE WHEN true THEN NEW.created_at := STAMP; END CASE;",
		"WHILE i IS NULL LOOP NEW.created_at := STAMP; i := 1; END LOOP;", "BEGIN PERFORM 1/0; EXCEPTION WHEN OTHERS THEN NEW.created_at := STAMP; END;",
	}
	triggerGaps = []string{" ", "\n", "  \t", " /* NEW.x := '; */ ", " -- ' ;\n"}
)

// The server runs functions of all forms, in all disguises: each that changed the stamp was
// found, or named as one that cannot be read.
func TestAssigned_TortureOfTriggers(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(pgtest.Seed(t), 0))
	pool := database(t, bookingsSQL+`CREATE TABLE app.other (n int);
		CREATE PROCEDURE app.stamp(INOUT a timestamptz) LANGUAGE plpgsql AS $$BEGIN a := '2001-01-01'; END$$`)
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	for round := range 3 * len(triggerForms) {
		form := triggerForms[round%len(triggerForms)]
		if round >= len(triggerForms) {
			words := strings.Split(form, " ")
			form = words[0]
			for _, word := range words[1:] {
				form += pick(triggerGaps) + word
			}
		}
		body := "DECLARE r app.bookings; i int; c refcursor; BEGIN " + pick(triggerNoise) + " " + form + " " + pick(triggerNoise) + " RETURN NEW; END"
		body = strings.ReplaceAll(body, "STAMP", "'2001-01-01'::timestamptz")
		exec(t, pool, `CREATE OR REPLACE FUNCTION app.f() RETURNS trigger LANGUAGE plpgsql AS `+literal(body))
		exec(t, pool, `CREATE OR REPLACE TRIGGER stamp BEFORE INSERT ON app.bookings FOR EACH ROW EXECUTE FUNCTION app.f();
			TRUNCATE app.bookings; INSERT INTO app.bookings DEFAULT VALUES`)
		require.Equal(t, 2001, pgtest.Value[int](t, pool, `SELECT extract(year FROM created_at)::int FROM app.bookings`), body)
		found := assigned(body, "created_at")
		require.NotEmpty(t, append(found.values, found.unread...), body)
	}
}
