package console

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// putAside makes dead letters of a process: letters 1, 2 and 3 have one error, and letter 4 another.
func putAside(w *world) {
	w.t.Helper()
	w.receiver.refuse("minus", "the amount is negative")
	w.receiver.refuse("nobody", "the customer is not known")
	for i := range 3 {
		w.insert("payments", fmt.Sprint("p-", i), "ada", fmt.Sprintf(`{"why": "minus", "number": %d}`, i))
	}
	w.insert("payments", "p-3", "ada", `{"why": "nobody"}`)
	w.eventually(func() bool {
		return pgtest.Value[int](w.t, w.pool, "SELECT count(*)::int FROM public.dead_letter") == 4
	})
}

func (w *world) resolved(resolution string) int {
	w.t.Helper()
	return pgtest.Value[int](w.t, w.pool, "SELECT count(*)::int FROM public.dead_letter WHERE resolution::text = $1", resolution)
}

func TestLetters_AGroupIsReplayedInOrderAndOthersAreDiscarded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"payments", "payments", "    on_poison: dead_letter\n"})
	putAside(w)
	p := w.ada()
	p.open("/letters")
	p.says("main", "the amount is negative")
	p.says("main", "the customer is not known")
	require.Equal(t, 2, value[int](p, `document.querySelectorAll("form[action='/letters/preview']").length`))
	p.says(".top nav", "4")

	group := `section[aria-label*="negative"] `
	p.click(group + `button[value="replay"]`)
	p.says("#decision", "p-0")
	p.says("#decision", "p-2")
	w.receiver.accept("minus")
	p.approve("the receiver takes refunds now")
	bodies := w.receiver.bodies("minus")
	require.Len(t, bodies, 3)
	for i, body := range bodies {
		require.True(t, strings.Contains(body, fmt.Sprintf(`"number": %d`, i)) || strings.Contains(body, fmt.Sprintf(`"number":%d`, i)), body)
	}
	require.Equal(t, 3, w.resolved("replayed"))

	p.open("/letters?all=yes")
	p.click(`section[aria-label*="not known"] button[value="discard"]`)
	p.says("#decision", "p-3")
	p.approve("a test customer")
	require.Equal(t, 1, w.resolved("discarded"))
	p.open("/letters")
	p.says("main", "There is no open dead letter")
}

func TestLetters_OneOfAGroupIsChosen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"payments", "payments", "    on_poison: dead_letter\n"})
	putAside(w)
	p := w.ada()
	p.open("/letters")
	group := `section[aria-label*="negative"] `
	p.click(group + "[data-all]") // none
	p.click(group + `tbody tr:nth-child(2) input`)
	p.click(group + `button[value="discard"]`)
	p.says("#decision", "p-1")
	require.False(t, value[bool](p, `document.querySelector("#decision").innerText.includes("p-0")`))
	p.approve("a duplicate")
	require.Equal(t, 1, w.resolved("discarded"))
	require.Equal(t, "p-1", pgtest.Value[string](t, w.pool, "SELECT record_id FROM public.dead_letter WHERE resolution IS NOT NULL"))

	id := pgtest.Value[string](t, w.pool, "SELECT id::text FROM public.dead_letter WHERE record_id = 'p-3'")
	p.open("/letters/" + id)
	p.leave(`button[value="discard"]`)
	p.says("#decision", "p-3")
	p.approve("a test customer")
	require.Equal(t, 2, w.resolved("discarded"))
}

func TestLetters_ATextReachesTheGroupsThatThePageDoesNotShow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"payments", "payments", "    on_poison: dead_letter\n"})
	putAside(w)
	pgtest.Exec(t, w.pool, `INSERT INTO public.dead_letter (process_name, position, sequence, table_name, record_id, attempts, first_failed_at, error, class)
		SELECT process_name, position, sequence, table_name, 'copy-' || i, attempts, first_failed_at, 'cause ' || repeat('x', i), class
		FROM public.dead_letter, generate_series(1, 55) i WHERE id = 1`)
	p := w.ada()
	p.open("/letters")
	p.says("main", "7 more groups with 7 letters come after these")
	require.Equal(t, 50, value[int](p, `document.querySelectorAll("form[action='/letters/preview']").length`))

	p.open("/letters?process=payments")
	p.enter(`input[name="error"]`, strings.Repeat("x", 55))
	p.leave(`form[role="search"] button`)
	require.Equal(t, w.url+"/letters", value[string](p, "location.href"), "no address has a text of an error")
	require.Equal(t, 1, value[int](p, `document.querySelectorAll("form[action='/letters/preview']").length`))
	p.click(`button[value="discard"]`)
	p.says("#decision", "copy-55")
	p.approve("a copy")
	require.Equal(t, "copy-55", pgtest.Value[string](t, w.pool, "SELECT string_agg(record_id, ' ') FROM public.dead_letter WHERE resolution IS NOT NULL"))
}
