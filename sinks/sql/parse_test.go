package sql

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// texts returns the statements' SQL.
func texts(statements []statement) []string {
	var all []string
	for _, s := range statements {
		all = append(all, s.sql)
	}
	return all
}

// restore puts the names back in the place of the parameters.
func restore(s statement, source string) string {
	var b strings.Builder
	for i, p := range s.pieces {
		end := len(s.sql)
		if i+1 < len(s.pieces) {
			end = min(end, s.pieces[i+1].at)
		}
		text := s.sql[min(p.at, end):end]
		if strings.HasPrefix(text, "$") && source[p.from] == '@' {
			l := lexer{source: source}
			text = source[p.from:l.skip(p.from+1, isNamePart)]
		}
		b.WriteString(text)
	}
	return b.String()
}

func TestParse_RewritesArguments(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"SELECT @id":                                "SELECT $1",
		"SELECT @id, @key, @id":                     "SELECT $1, $2, $1",
		"SELECT (@id)::text||@key":                  "SELECT ($1)::text||$2",
		"SELECT @payload::jsonb->>'amount'":         "SELECT $1::jsonb->>'amount'",
		"UPDATE t SET a=@id,b=@key":                 "UPDATE t SET a=$1,b=$2",
		"SELECT a>=@id, b<>@key, c!=@type":          "SELECT a>=$1, b<>$2, c!=$3",
		"SELECT p->@key, p->>@id, -@sequence":       "SELECT p->$1, p->>$2, -$3",
		"SELECT f(a=>@id, b:=@key)":                 "SELECT f(a=>$1, b:=$2)",
		"SELECT a[@sequence:@epoch]":                "SELECT a[$1:$2]",
		"@id":                                       "$1",
		"SELECT @process;":                          "SELECT $1",
		"SELECT\n@position\t--@key":                 "SELECT\n$1\t--@key",
		"SELECT @dedup_key/*@key*/,@created_at/**/": "SELECT $1/*@key*/,$2/**/",
		"SELECT '@id', \"@id\", $$@id$$, $q$@id$q$, E'\\'@id', @headers": "SELECT '@id', \"@id\", $$@id$$, $q$@id$q$, E'\\'@id', $1",
	} {
		statements, err := parse(source)
		require.NoError(t, err, source)
		require.Equal(t, []string{want}, texts(statements), source)
	}
}

func TestParse_LeavesOperatorsAlone(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{
		"SELECT a @> b, a <@ b, a @@ b, a @? b, @-@ a, @@ a, @ a, a @@@ b",
		"SELECT a<@b, a@>b, a@@b, a@?b, @@a, @-@a, a <@b, a ?@b, a ^@b",
		"SELECT a<->b, a<=>b, a<#>b, a<+>b, a<~>b, a<%>b",
		"SELECT geom@box, \"geom\"@box, g1@g2",
		"SELECT a ?| b, a ?& b, a #- b, a #>> b, a !~~* b, |/ a, ||/ b, !!c",
		"SELECT 1 -- @foo\n+ /* @foo /* ; @foo */ ; */ 2",
	} {
		statements, err := parse(sql)
		require.NoError(t, err, sql)
		require.Equal(t, []string{sql}, texts(statements))
		require.Empty(t, statements[0].params)
	}
}

func TestParse_RefusesWhatCanBeReadAsArgumentOrOperator(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		"SELECT a <@id", "SELECT a @@key", "SELECT @-@id", "SELECT a@id", `SELECT "a"@id`, "SELECT 1@id", "SELECT @id@key",
		"SELECT a=-@sequence", "SELECT a @>@payload", "SELECT a ?@key",
	} {
		_, err := parse(source)
		require.ErrorContains(t, err, "put a space before @ or behind it", source)
	}
}

func TestParse_NamesUnknownArgumentsWithTheirPlaceAndTheKnownOnes(t *testing.T) {
	t.Parallel()
	_, err := parse("SELECT 'é',\n  'é' || @foo, @ID, @id2, $1")
	require.ErrorContains(t, err, "line 2, column 10: there is no argument @foo, only @id, @key, @type, @payload, @headers, "+
		"@created_at, @sequence, @position, @dedup_key, @process, @epoch; behind the operator @ put a space")
	require.ErrorContains(t, err, "line 2, column 16: there is no argument @ID")
	require.ErrorContains(t, err, "@id2")
	require.ErrorContains(t, err, "$1 is no argument")
}

func TestParse_SplitsAtSemicolonsOfTheTopLevelOnly(t *testing.T) {
	t.Parallel()
	for source, want := range map[string][]string{
		"SELECT 1; SELECT 2":                       {"SELECT 1", "SELECT 2"},
		"; ;SELECT 1;;\n;":                         {"SELECT 1"},
		"SELECT 1; -- the end; of it":              {"SELECT 1"},
		"/*+ hint */ SELECT 1 -- tail":             {"/*+ hint */ SELECT 1 -- tail"},
		"SELECT ';';SELECT 'it'';s'":               {"SELECT ';'", "SELECT 'it'';s'"},
		`SELECT '\';SELECT 2`:                      {`SELECT '\'`, `SELECT 2`},
		`SELECT E'\';' ;SELECT e'\\';SELECT 3`:     {`SELECT E'\';'`, `SELECT e'\\'`, `SELECT 3`},
		`SELECT E''';' ;SELECT 2`:                  {`SELECT E''';'`, `SELECT 2`},
		`SELECT typE'\';SELECT 2`:                  {`SELECT typE'\'`, `SELECT 2`},
		"SELECT E'a' -- c\n '\\';' ;SELECT 2":      {"SELECT E'a' -- c\n '\\';'", "SELECT 2"},
		"SELECT E'a' '\\';SELECT 2":                {"SELECT E'a' '\\'", "SELECT 2"}, // no line break: no continuation
		`SELECT "a;""b;";SELECT U&"\;", U&'\;'`:    {`SELECT "a;""b;"`, `SELECT U&"\;", U&'\;'`},
		"SELECT $$;$a$;$$;SELECT $a$;$$;$b$;$a$":   {"SELECT $$;$a$;$$", "SELECT $a$;$$;$b$;$a$"},
		"SELECT $é_1$;$é_1$;SELECT a$b$c;SELECT 3": {"SELECT $é_1$;$é_1$", "SELECT a$b$c", "SELECT 3"},
		"SELECT $ ;SELECT $a ;SELECT $a b$":        {"SELECT $", "SELECT $a", "SELECT $a b$"},
		"SELECT 1 /* ; /* ; */ ; */ ; SELECT 2":    {"SELECT 1 /* ; /* ; */ ; */", "SELECT 2"},
		"SELECT 1 /*/ ; */ ; SELECT 2 /**/;":       {"SELECT 1 /*/ ; */", "SELECT 2 /**/"},
		"SELECT 1 +/* ; */ 2; SELECT 2 *-- ;\n3":   {"SELECT 1 +/* ; */ 2", "SELECT 2 *-- ;\n3"},
		"SELECT 1 --\r; SELECT 2":                  {"SELECT 1 --", "SELECT 2"},
		"CREATE RULE r AS ON UPDATE TO t DO (SELECT 1; SELECT 2); SELECT 3": {
			"CREATE RULE r AS ON UPDATE TO t DO (SELECT 1; SELECT 2)", "SELECT 3"},
	} {
		statements, err := parse(source)
		require.NoError(t, err, source)
		require.Equal(t, want, texts(statements), source)
	}
}

func TestParse_RefusesWhatIsNotEnded(t *testing.T) {
	t.Parallel()
	for source, fault := range map[string]string{
		"SELECT 1;\n SELECT 'abc":      "line 2, column 9: what begins with 'a is not ended",
		"SELECT 'é":                    "what begins with 'é is not ended",
		"SELECT \"abc":                 "is not ended",
		`SELECT E'\'`:                  "is not ended",
		"SELECT E'a'\n'":               "is not ended",
		"SELECT $$abc":                 "is not ended",
		"SELECT $a$abc$$":              "is not ended",
		"SELECT /* /* */":              "what begins with /* is not ended",
		"SELECT (1; SELECT (2)":        `line 1, column 8: the "(" is not closed`,
		" -- nothing\n /* at all */ ;": "there are only comments",
	} {
		_, err := parse(source)
		require.ErrorContains(t, err, fault, source)
	}
}

func TestParse_RefusesWhatWouldOutliveOrEndTheTransaction(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		"COMMIT", "SELECT 1; commit", "/* c */ Rollback to x", "BEGIN", "START TRANSACTION", "end", "ABORT", "SAVEPOINT a",
		"RELEASE a", "PREPARE TRANSACTION 'x'", "SET a = 1", "SET SESSION a = 1", "RESET ALL", "DISCARD ALL", "DEALLOCATE ALL",
		"EXECUTE a", "LISTEN a", "UNLISTEN *", "LOAD 'a'", "COPY t FROM STDIN",
	} {
		_, err := parse(source)
		require.ErrorContains(t, err, ": remove it", source)
	}
	for _, source := range []string{
		"SET LOCAL a = 1", "SET CONSTRAINTS ALL DEFERRED", "SELECT 1 AS commit", "\"commit\"", "'commit'", "NOTIFY a", "commits",
		"CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $$ BEGIN COMMIT; END $$", "WITH a AS (SELECT 1) SELECT * FROM a",
	} {
		_, err := parse(source)
		require.NoError(t, err, source)
	}
}

func TestNew_ReturnsEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Statement: "SELECT @foo; COMMIT; SELECT @bar, $1; SELECT 'x"})
	for _, fault := range []string{"@foo", "COMMIT", "@bar", "$1", "not ended"} {
		require.ErrorContains(t, err, fault)
	}
	for _, statement := range []string{"", " \n", "SELECT 1\x00"} {
		_, err := New(Config{Statement: statement})
		require.ErrorContains(t, err, "configure sql sink: the statement", "%q", statement)
	}
}

// part is SQL of one token or more, with what becomes of it.
type part struct{ sql, rewritten string }

// inert draws parts in which a semicolon or an argument means nothing.
func inert() *rapid.Generator[part] {
	text := rapid.StringOf(rapid.SampledFrom([]rune("a;@(éE$1 \n\\'\"-/*")))
	same := func(s string) part { return part{s, s} }
	without := func(s string, cut ...string) string {
		for _, c := range cut {
			s = strings.ReplaceAll(s, c, "")
		}
		return s
	}
	quote := func(s, mark string) string { return mark + strings.ReplaceAll(s, mark, mark+mark) + mark }
	return rapid.OneOf(
		// Not "'" alone: behind E'' and a line break that would go on with it.
		rapid.Map(text, func(s string) part { return same("||" + quote(s, "'")) }),
		rapid.Map(text, func(s string) part { return same(quote(s, `"`)) }),
		rapid.Map(text, func(s string) part { return same("E" + quote(strings.ReplaceAll(s, `\`, `\\`), "'")) }),
		rapid.Map(text, func(s string) part { return same(`e'` + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + `'`) }),
		rapid.Map(text, func(s string) part { return same("$$" + without(s, "$") + "$$") }),
		rapid.Map(text, func(s string) part { return same("$E$" + without(s, "$E") + " $E$") }),
		rapid.Map(text, func(s string) part { return same("--" + without(s, "\n") + "\n") }),
		rapid.Map(text, func(s string) part { return same("/*" + without(s, "/", "*") + "/* ; */ @id */") }),
		rapid.SampledFrom([]part{same("a @> b"), same("<@"), same("@@ c"), same("(x)"), same("f(';', (1))"), same("= ANY"), same("é$1$")}),
	)
}

func live() *rapid.Generator[part] {
	return rapid.SampledFrom([]part{{"@id", "$1"}, {"( @id )", "( $1 )"}, {"x=@id", "x=$1"}, {"@id::text", "$1::text"}})
}

func TestParse_NeverSplitsOrRewritesInsideQuotes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var source strings.Builder
		var want []string
		for range rapid.IntRange(1, 4).Draw(t, "statements") {
			sql, rewritten := "SELECT", "SELECT"
			for _, p := range rapid.SliceOf(rapid.OneOf(inert(), live())).Draw(t, "parts") {
				sql += " " + p.sql
				rewritten += " " + p.rewritten
			}
			source.WriteString(sql + rapid.SampledFrom([]string{";", "\n;", ";;", "; ; "}).Draw(t, "end"))
			want = append(want, strings.TrimRight(rewritten, " \n"))
		}
		statements, err := parse(source.String())
		require.NoError(t, err, source.String())
		require.Equal(t, want, texts(statements))
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"INSERT INTO a.b VALUES (@id, @payload::jsonb->>'x') ON CONFLICT DO NOTHING; SELECT 1",
		"SELECT E'\\';' \n '\\'', $a$;$a$, \"x;\", /* /* ; */ */ a<@b -- ;\n;@key", "(;)", "$1", "'", "E'a'\n--;\n'b\\'", "@", "@@id", "é@é",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		statements, err := parse(source)
		if err != nil {
			return
		}
		rest := source
		for _, s := range statements {
			text := restore(s, source)
			at := strings.Index(rest, text)
			require.GreaterOrEqual(t, at, 0, "the statements are cut from the source, in order")
			rest = rest[at+len(text):]
			again, err := parse(text)
			require.NoError(t, err)
			require.Equal(t, []string{s.sql}, texts(again), "a statement is one statement")
			for i := range len(s.sql) + 1 {
				require.LessOrEqual(t, s.from(i), len(source)+len(s.sql))
			}
		}
	})
}
