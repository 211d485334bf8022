package sql

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParse_RewritesArguments(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"SELECT @id":                                                             "SELECT $1",
		"SELECT @id, @key, @id":                                                  "SELECT $1, $2, $1",
		"SELECT (@id)::text||@key":                                               "SELECT ($1)::text||$2",
		"SELECT @payload::jsonb->>'amount'":                                      "SELECT $1::jsonb->>'amount'",
		"SELECT a>=@id, b<>@key, c!=@type":                                       "SELECT a>=$1, b<>$2, c!=$3",
		"SELECT f(a=>@id, b:=@key), a[@sequence:1]":                              "SELECT f(a=>$1, b:=$2), a[$3:1]",
		"SELECT @dedup_key/*@key*/,@created_at/**/":                              "SELECT $1/*@key*/,$2/**/",
		"SELECT a @> b, a <@ b, a @@ b, a @? b, @-@ a, @@ a, @ a":                "SELECT a @> b, a <@ b, a @@ b, a @? b, @-@ a, @@ a, @ a",
		"SELECT '@id', \"@id\", $$@id$$, $q$@id$q$, E'\\'@id', @headers -- @foo": "SELECT '@id', \"@id\", $$@id$$, $q$@id$q$, E'\\'@id', $1 -- @foo",
	} {
		statements, err := parse([]string{source})
		require.NoError(t, err, source)
		require.Equal(t, want, statements[0].sql, source)
		require.Equal(t, len(source), statements[0].from(len(want)), source)
	}
}

func TestParse_NamesUnknownArgumentsWithTheirPlaceAndTheKnownOnes(t *testing.T) {
	t.Parallel()
	_, err := parse([]string{"SELECT 1", "SELECT 'é',\n  'é' || @foo, @ID, @id2, $1, box<@area, a$1, $$1$$"})
	const known = "@id, @key, @type, @payload, @headers, @created_at, @sequence, @position, @dedup_key, @process, @epoch"
	var want []string
	for _, fault := range []string{"10: @foo", "16: @ID", "21: @id2"} {
		column, name, _ := strings.Cut(fault, ": ")
		want = append(want, "statement 2: line 2, column "+column+": there is no argument "+name+", only "+known+"; after the operator @ put a space")
	}
	want = append(want, "statement 2: line 2, column 27: $1 is not an argument: the parts of a record are "+known,
		"statement 2: line 2, column 35: there is no argument @area, only "+known+"; after the operator @ put a space")
	require.EqualError(t, err, strings.Join(want, "\n"))
}

// PostgreSQL reads on in the next line of a string, and pgx does not: what follows would be a string to one of them
// and code to the other, and "@id" an operator before a column.
func TestParse_RefusesAnEscapeStringBesideOneThatGoesOn(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		"UPDATE t SET note = E'a'\n'it\\'s' WHERE id = @id", "SELECT e'a' -- c\n  -- d\n 'b', @id", "SELECT 'a'\r\n'b', E'\\n'",
	} {
		_, err := parse([]string{source})
		require.EqualError(t, err, "statement 1 has an E'…' string, and a string that goes on in another line: write each string in one piece", source)
	}
	for _, source := range []string{"SELECT 'a'\n'b', @id", "SELECT E'a',\n'b', @id", "SELECT E'a\\'', @id", "SELECT name'a'\n'b'"} {
		_, err := parse([]string{source})
		require.NoError(t, err, source)
	}
}

func TestParse_RefusesAnArgumentThatWouldBecomeAPartOfAName(t *testing.T) {
	t.Parallel()
	for _, source := range []string{"SELECT 1 WHERE true AND@id", "SELECT x@id", "SELECT 1@id", "SELECT @id$x", "SELECT @idé"} {
		_, err := parse([]string{source})
		require.ErrorContains(t, err, ": put a space before @id and after it", source)
	}
}

func TestParse_RefusesSeveralCommandsInOneStatement(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		"SELECT 1; SELECT 2", "SELECT 1 ;; /* two */ SELECT 2", "SELECT $$;$$;\n\nSELECT 2;", `SELECT '\';SELECT 2`, `SELECT E'\\';SELECT 2`,
		`SELECT typE'\';SELECT 2`, "SELECT a$b$c;SELECT 3", "SELECT $ ;SELECT $a", "SELECT 1 --\r; SELECT 2",
	} {
		_, err := parse([]string{source})
		require.EqualError(t, err, "statement 1 holds several commands: make it a list, one statement an item", source)
	}
	for _, source := range []string{
		"SELECT 1;", "; SELECT 1;;\n;", "SELECT 1; -- the end; of it", "SELECT 1; /* ; /* ; */ ; */", "SELECT ';', \";\", E'\\';', $a$;$$;$a$ /* ; */",
	} {
		_, err := parse([]string{source})
		require.NoError(t, err, source)
	}
}

func TestParse_RefusesWhatWouldOutliveOrEndTheTransaction(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		"COMMIT", "; commit", "/* c /* */ */ Rollback to x", "-- c\nBEGIN", "START TRANSACTION", "end", "ABORT", "SAVEPOINT a",
		"RELEASE a", "PREPARE TRANSACTION 'x'", "SET a = 1", "SET SESSION a = 1", "RESET ALL", "DISCARD ALL", "DEALLOCATE ALL",
		"EXECUTE a", "LISTEN a", "UNLISTEN *", "LOAD 'a'", "COPY t FROM STDIN",
	} {
		_, err := parse([]string{source})
		require.ErrorContains(t, err, ": remove it", source)
	}
	for _, source := range []string{
		"SET LOCAL a = 1", "SET /* c */ CONSTRAINTS ALL DEFERRED", "SELECT 1 AS commit", "\"commit\"", "'commit'", "NOTIFY a", "commits",
		"CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN COMMIT; END $$", "WITH a AS (SELECT 1) SELECT * FROM a",
	} {
		_, err := parse([]string{source})
		require.NoError(t, err, source)
	}
}

func TestNew_ReturnsEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Statements: []string{"SELECT @foo", "COMMIT", "SELECT @bar, $1; SELECT 2", "", " -- nothing\n /* at all */ ;", "SELECT 1\x00", "SELECT '\xff'"}})
	for _, fault := range []string{"statement 1: line 1, column 8: there is no argument @foo", "statement 2: COMMIT", "@bar", "$1", "statement 3 holds several",
		"statement 4 is empty", "statement 5 is empty", "statement 6 holds a NUL byte", "statement 7 is not in UTF-8"} {
		require.ErrorContains(t, err, fault)
	}
	_, err = New(Config{})
	require.ErrorContains(t, err, "configure sql sink: the statement is missing")
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"INSERT INTO a.b VALUES (@id, @payload::jsonb->>'x') ON CONFLICT DO NOTHING; SELECT 1",
		"SELECT E'\\';' \n '\\'', $a$;$a$, \"x;\", /* /* ; */ */ a<@b -- ;\n;@key", "(;)", "$1", "'", "$$1;$$", "$$$1", "@", "@@id", "é@é", "é@id",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		statements, err := parse([]string{source})
		if err != nil {
			return
		}
		s := statements[0]
		require.Equal(t, len(source), s.from(len(s.sql)))
		for _, index := range s.params {
			require.Contains(t, source, "@"+arguments[index].name)
		}
	})
}
