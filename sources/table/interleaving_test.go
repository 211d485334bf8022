package table

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/prepared"
)

// stepper sends the statements of a read one by one, so that others can work in
// between. It is the read in all else, unless a mutant changes it.
type stepper struct {
	*session
	l      *layout
	config Config
	fence  interface{ next(sample) int64 }
	order  func([]statement) []statement
	writer func([]writer) []writer
}

func newStepper(t testing.TB, s *Source, conn *session) *stepper {
	t.Helper()
	l, _, err := s.inspect(t.Context())
	require.NoError(t, err)
	require.NotNil(t, l)
	return &stepper{session: conn, l: l, config: s.config, fence: &fence{}}
}

// part says which part of a read a statement is.
func part(s statement) string {
	switch tag, _, _ := strings.Cut(strings.TrimPrefix(s.SQL, "/* source."), " "); tag {
	case "mark", "writers", "waiting", "activity", "prepared", "read":
		return tag
	default:
		return "begin" // or settings, hold, COMMIT
	}
}

// gaps is how often read calls gap.
func (st *stepper) gaps() int { return 2 + len(st.l.writerQueries()) }

// read is one read behind a position. It calls gap before each of its parts, in
// whatever order they stand.
func (st *stepper) read(after cursor.Position, gap func()) []row {
	st.t.Helper()
	query, args, err := st.l.query(st.config, after, 100)
	require.NoError(st.t, err)
	statements := st.l.statements(st.config, query, args)
	require.NoError(st.t, prepared.Ready(st.t.Context(), st.Conn, []string{beginSQL, readSettingsSQL}, preparable(statements)...))
	if st.order != nil {
		statements = st.order(statements)
	}
	r := st.l.newReading(st.config, new(scratch), 100, 100)
	var rows []row
	found := map[string][][][]byte{}
	last := ""
	for _, s := range statements {
		if now := part(s); now != last && now != "begin" {
			last = now
			gap()
		}
		results, err := prepared.Exec(st.t.Context(), st.Conn, s).ReadAll()
		require.NoError(st.t, err, s.SQL)
		result := results[0]
		switch part(s) {
		case "mark":
			require.NoError(st.t, r.takeMark(result.Rows[0]))
		case "writers", "waiting", "activity", "prepared":
			found[part(s)] = result.Rows
		case "read":
			for _, values := range result.Rows {
				var row row
				require.NoError(st.t, st.l.row(&row, values, &r.columns))
				rows = append(rows, row)
			}
		}
	}
	r.sample.writers, err = st.l.writers(inTurn(st.l, found))
	require.NoError(st.t, err)
	if st.writer != nil {
		r.sample.writers = st.writer(r.sample.writers)
	}
	bound := st.fence.next(r.sample)
	below := slices.IndexFunc(rows, func(row row) bool {
		return !st.l.below(&row, bound, st.l.slack(st.config).Microseconds())
	})
	if below >= 0 {
		return rows[:below]
	}
	return rows
}

// inTurn is what writers takes: the results in the order of writerQueries.
func inTurn(l *layout, found map[string][][][]byte) [][][][]byte {
	var results [][][][]byte
	for _, sql := range l.writerQueries() {
		results = append(results, found[part(statement{SQL: sql})])
	}
	return results
}

// play is what two producers do while a reader reads: one interleaving of events
// with the parts of a few reads.
type play struct {
	t      testing.TB
	first  func()            // before the first read
	events []func()          // in their order
	ids    map[string]string // of the early row and the late one
	got    []string          // of the rows that were read
	reads  int
	known  bool // the reader has seen a sample before the first event
}

// loses runs each event before the gap it is placed at, reads to the end, and
// reports whether a committed row was passed over.
func (p *play) loses(st *stepper, after cursor.Position, at []int) bool {
	p.t.Helper()
	p.ids = map[string]string{}
	if p.known {
		st.read(after, func() {})
	}
	if p.first != nil {
		p.first()
	}
	now, next := 0, 0
	gap := func() {
		for next < len(at) && at[next] == now {
			p.events[next]()
			next++
		}
		now++
	}
	var got []string
	take := func(rows []row) {
		for _, row := range rows {
			position, err := st.l.kind.position(key{at: row.at, id: string(row.id)})
			require.NoError(p.t, err)
			require.Less(p.t, after, position)
			after = position
			got = append(got, string(row.id))
		}
	}
	for range p.reads {
		take(st.read(after, gap))
	}
	gap()
	require.Len(p.t, at, next)
	// The late row sorts before the early one: it is lost when that one is read
	// without it. Until then they may still be held back.
	await(p.t, "they are read", func() bool {
		take(st.read(after, func() {}))
		return slices.Contains(got, p.ids["early"])
	})
	p.got = got
	return !slices.Equal(got, []string{p.ids["late"], p.ids["early"]})
}

// pass lets the latency of these tests pass.
const pass = `SELECT pg_sleep(0.0015)`

// each calls f with every way to place n events in order at gaps 0 to end, until
// it says stop.
func each(n, end int, f func(at []int) (stop bool)) {
	at := make([]int, n)
	var place func(i, from int) bool
	place = func(i, from int) bool {
		if i == n {
			return f(at)
		}
		for g := from; g <= end; g++ {
			at[i] = g
			if place(i+1, g) {
				return true
			}
		}
		return false
	}
	place(0, 0)
}

// stage is a table with two producers and a reader.
type stage struct {
	t           testing.TB
	pool        *pgxpool.Pool
	source      *Source
	reader      *session
	late, early *session
}

func newStage(t testing.TB, sql, role string, c Config) *stage {
	t.Helper()
	pool := database(t, sql)
	readers := readerPool(t, pool, role)
	if c.Order == ID && role != "same" {
		require.Fail(t, "the role may not read the sequence")
	}
	c.Latency = time.Millisecond
	st := &stage{t: t, pool: pool, source: bookings(t, readers, c), reader: newSession(t, readers), late: newSession(t, pool), early: newSession(t, pool)}
	for _, s := range []*session{st.late, st.early} {
		s.do(`SET synchronous_commit = off; SET search_path = app`)
	}
	return st
}

// plays are the ways in which a row may come late: committed by its session, or
// prepared. The first event stamps it.
func (st *stage) plays() []*play {
	begin, insert := `BEGIN; INSERT INTO bookings DEFAULT VALUES`, ``
	atStart := st.source.mustLayout(st.t).stamp == stampAtStart
	if atStart {
		begin, insert = `BEGIN; SELECT 1`, `INSERT INTO bookings DEFAULT VALUES;`
	}
	gid := literal(st.pool.Config().ConnConfig.Database)
	newPlay := func(reads int, known bool, end ...func(p *play)) *play {
		p := &play{t: st.t, reads: reads, known: known}
		p.events = []func(){
			func() { st.late.do(begin) },
			func() {
				p.ids["early"] = pgtest.Value[string](st.t, st.early, `INSERT INTO bookings DEFAULT VALUES RETURNING id::text`)
				st.early.do(pass)
			},
		}
		for _, event := range end {
			p.events = append(p.events, func() { event(p) })
		}
		return p
	}
	committed := func(p *play) {
		p.ids["late"] = pgtest.Value[string](st.t, st.late, `SELECT currval('bookings_id_seq')::text`)
	}
	commit := func(p *play) { st.late.do(insert + `COMMIT`); committed(p) }
	prepare := func(*play) { st.late.do(insert + `PREPARE TRANSACTION ` + gid) }
	commitPrepared := func(p *play) { st.late.do(`COMMIT PREPARED ` + gid); committed(p) }
	twoPhase := newPlay(2, true, prepare, commitPrepared)
	if atStart { // there are more gaps here; fewer events keep it short
		begun, overtaken := twoPhase.events[0], twoPhase.events[1]
		twoPhase.events = append([]func(){func() { begun(); overtaken() }}, twoPhase.events[2:]...)
	}
	// Prepared while one sample is taken, and still there at the next.
	longer := newPlay(3, true, prepare, commitPrepared)
	begun, overtaken := longer.events[0], longer.events[1]
	longer.first, longer.events = func() { begun(); overtaken() }, longer.events[2:]
	return []*play{newPlay(2, true, commit), newPlay(1, false, commit), twoPhase, longer}
}

func (s *Source) mustLayout(t testing.TB) *layout {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	l, err := s.current(t.Context())
	require.NoError(t, err)
	return l
}

// run plays every interleaving, until one loses a row. It returns that one, and
// how many there were.
func (st *stage) run(plays []*play, mutate func(*stepper)) (lost string, played int) {
	for _, p := range plays {
		reader := newStepper(st.t, st.source, st.reader)
		each(len(p.events), p.reads*reader.gaps(), func(at []int) bool {
			played++
			reader.fence = &fence{}
			if mutate != nil {
				mutate(reader)
			}
			if p.loses(reader, st.source.mustEnd(st.t), at) {
				lost = fmt.Sprintf("events at %v of %d reads: committed %v, read %v", at, p.reads, p.ids, p.got)
			}
			return lost != ""
		})
		if lost != "" {
			break
		}
	}
	return lost, played
}

var stages = map[string]struct {
	sql, role string
	config    Config
}{
	"clock_timestamp":   {bookingsSQL, "same", Config{}},
	"id":                {bookingsSQL, "same", Config{Order: ID}},
	"now":               {nowTable, "same", Config{}},
	"now, another role": {nowTable, "stats", Config{}},
}

// The statements of two reads, and between them, at every place, what a
// transaction does that stamps a row and commits it late.
func TestFence_EveryInterleaving(t *testing.T) {
	t.Parallel()
	for name, c := range stages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st := newStage(t, c.sql, c.role, c.config)
			lost, played := st.run(st.plays(), nil)
			require.Empty(t, lost)
			t.Logf("%d interleavings", played)
		})
	}
}

// Each protection switched off loses a row in one of these interleavings.
func TestFence_EveryProtectionIsNeeded(t *testing.T) {
	t.Parallel()
	for name, mutant := range mutants {
		for _, stage := range mutant.stages {
			t.Run(name+", "+stage, func(t *testing.T) {
				t.Parallel()
				c := stages[stage]
				st := newStage(t, c.sql, c.role, c.config)
				lost, played := st.run(st.plays()[mutant.play:], mutant.change)
				require.NotEmpty(t, lost, "%d interleavings", played)
				t.Logf("%s, after %d", lost, played)
			})
		}
	}
}

type mutant struct {
	play   int // the first that may kill it
	change func(*stepper)
	stages []string // where it must lose
}

var (
	always  = []string{"clock_timestamp", "id", "now", "now, another role"}
	undated = []string{"clock_timestamp", "id"}
)

var mutants = map[string]mutant{
	"rows before writers": {0, func(st *stepper) {
		st.order = ordered("begin", "mark", "read", "writers", "waiting", "activity", "prepared")
	}, always},
	"mark after writers": {0, func(st *stepper) {
		st.order = ordered("begin", "writers", "waiting", "activity", "prepared", "mark", "read")
	}, always},
	"rows before mark": {0, func(st *stepper) {
		st.order = ordered("begin", "read", "mark", "writers", "waiting", "activity", "prepared")
	}, always},
	"one snapshot for all": {0, func(st *stepper) {
		st.order = func(all []statement) []statement {
			all[0].SQL = strings.Replace(all[0].SQL, "READ COMMITTED", "REPEATABLE READ", 1)
			return all
		}
	}, always},
	"prepared before sessions": {2, func(st *stepper) {
		st.order = ordered("begin", "mark", "waiting", "prepared", "activity", "read")
	}, []string{"now", "now, another role"}},
	"bounds ignored":       {0, func(st *stepper) { st.fence = noBounds{} }, always},
	"bounds not kept":      {0, func(st *stepper) { st.fence = &forgetful{} }, undated},
	"first sample trusted": {1, func(st *stepper) { st.fence = &trusting{} }, undated},
	"prepared is taken for new": {2, func(st *stepper) {
		st.writer = func(writers []writer) []writer {
			for i := range writers {
				writers[i].prepared = false
			}
			return writers
		}
	}, []string{"now", "now, another role"}},
	"prepared is not seen": {2, func(st *stepper) {
		st.writer = func(writers []writer) []writer {
			return slices.DeleteFunc(writers, func(w writer) bool { return w.prepared })
		}
	}, always},
}

// ordered puts the parts of a read into another order.
func ordered(parts ...string) func([]statement) []statement {
	return func(all []statement) []statement {
		commit := all[len(all)-1]
		var result []statement
		for _, wanted := range parts {
			for _, s := range all[:len(all)-1] {
				if part(s) == wanted {
					result = append(result, s)
				}
			}
		}
		return append(result, commit)
	}
}

// noBounds reads up to the mark.
type noBounds struct{}

func (noBounds) next(s sample) int64 { return s.mark }

// forgetful takes each writer for new in each sample.
type forgetful struct {
	last int64
	seen bool
}

func (f *forgetful) next(s sample) int64 {
	bound := s.mark
	if len(s.writers) > 0 {
		bound = f.last
		if !f.seen {
			bound = unbounded
		}
	}
	f.last, f.seen = s.mark, true
	return bound
}

// trusting takes the writers of the first sample for new.
type trusting struct {
	fence
	begun bool
}

func (f *trusting) next(s sample) int64 {
	if !f.begun {
		f.begun = true
		f.fence.next(sample{server: s.server, mark: s.mark})
	}
	return f.fence.next(s)
}
