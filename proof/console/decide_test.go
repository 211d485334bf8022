package console

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// press opens the preview of a decision, by its button.
func (p *tab) press(verb string) {
	p.t.Helper()
	p.click(fmt.Sprintf(`button[aria-label="Preview of %s"]`, verb))
	p.do(chromedp.WaitVisible(chromedp.CSS("#decision.decision")))
}

// approve gives the reason, and sends the form of the preview.
func (p *tab) approve(reason string) {
	p.t.Helper()
	if reason != "" {
		p.enter("#reason", reason)
	}
	p.click("#decision form button")
	p.until(`document.querySelector("#decision li:last-child[aria-current]") !== null`)
}

// audited is what the audit has of the last event of an action: who, and why.
func (w *world) audited(action string) (actor, reason string) {
	w.t.Helper()
	return pgtest.Value[string](w.t, w.pool, "SELECT actor FROM public.cursor_event WHERE action = $1 ORDER BY id DESC LIMIT 1", action),
		pgtest.Value[string](w.t, w.pool, "SELECT reason FROM public.cursor_event WHERE action = $1 ORDER BY id DESC LIMIT 1", action)
}

func TestProcess_APoisonRecordIsRetriedAfterItsPreview(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"payments", "payments", ""})
	w.receiver.refuse("-5", "the amount is negative")
	w.insert("payments", "p-1", "barbara", `{"amount": -5}`)
	w.insert("payments", "p-2", "tony", `{"amount": 8}`)
	p := w.ada()
	p.open("/processes/payments")
	p.says("#standing", "halted")
	p.says("#head", "p-1")
	p.says("#head", "the amount is negative")
	p.says("#head", `"amount": -5`)

	p.press("retry")
	p.says("#decision", "p-1")
	require.Empty(t, w.receiver.bodies("8"), "a preview changes nothing")
	require.Equal(t, "halted", pgtest.Value[string](t, w.pool, "SELECT state::text FROM public.cursor"))
	w.receiver.accept("-5")
	p.approve("the receiver takes refunds now")
	w.eventually(func() bool { return len(w.receiver.bodies("amount")) == 2 })
	p.says("#standing", "running")
	p.says("#history", "the receiver takes refunds now")
	actor, reason := w.audited("retry")
	require.Equal(t, "ada", actor)
	require.Equal(t, "the receiver takes refunds now", reason)
}

func TestProcess_SkipAsksForAReasonAndPassesOverOneRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"payments", "payments", ""})
	w.receiver.refuse("-5", "the amount is negative")
	w.insert("payments", "p-1", "barbara", `{"amount": -5}`)
	w.insert("payments", "p-2", "tony", `{"amount": 8}`)
	p := w.ada()
	p.open("/processes/payments")
	p.says("#standing", "halted")
	p.press("skip")
	require.True(t, value[bool](p, `document.querySelector("#reason").required`))
	p.click("#decision form button") // without a reason the browser does not send it
	require.True(t, value[bool](p, `document.querySelector("#reason:invalid") !== null`))
	p.approve("a test record")
	w.eventually(func() bool { return len(w.receiver.bodies("8")) == 1 })
	require.Empty(t, w.receiver.bodies("-5"))
	_, reason := w.audited("skip")
	require.Equal(t, "a test record", reason)
}

func TestProcess_PauseResumeAndSeek(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"payments", "payments", ""})
	for i := range 3 {
		w.insert("payments", fmt.Sprint("p-", i), "ada", fmt.Sprintf(`{"number": "n%d"}`, i))
	}
	w.eventually(func() bool { return len(w.receiver.bodies("number")) == 3 })
	p := w.ada()
	p.open("/processes/payments")
	p.press("pause")
	p.approve("stocktaking")
	p.says("#standing", "paused")
	p.says("#standing", "stocktaking")

	p.click("#seek summary")
	p.enter(`#seek input[name="at-id"]`, "p-1")
	p.click("#seek button")
	p.says("#decision", "p-1")
	p.says("#decision", "p-2")
	p.approve("the receiver lost two")
	require.Len(t, w.receiver.bodies("number"), 3)

	p.until(`document.querySelector('button[aria-label="Preview of resume"]') !== null`)
	p.press("resume")
	p.approve("")
	w.eventually(func() bool { return len(w.receiver.bodies("number")) == 5 })
	require.Len(t, w.receiver.bodies("n0"), 1)
	require.Len(t, w.receiver.bodies("n1"), 2)
}

// seek opens the preview of a seek.
func (p *tab) seek(kind, place string) {
	p.t.Helper()
	p.open("/processes/payments")
	p.click("#seek summary")
	p.click(fmt.Sprintf(`#seek input[name="to"][value="%s"]`, kind))
	p.enter(fmt.Sprintf(`#seek input[name="at-%s"]`, kind), place)
	p.click("#seek button")
	p.do(chromedp.WaitVisible(chromedp.CSS("#decision.decision")))
}

func TestProcess_SeekByPositionAndByTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"payments", "payments", ""})
	for i := range 3 {
		w.insert("payments", fmt.Sprint("p-", i), "ada", fmt.Sprintf(`{"number": "n%d"}`, i))
	}
	w.eventually(func() bool { return len(w.receiver.bodies("number")) == 3 })
	w.command("pause", "payments", "--reason", "a test")
	p := w.ada()
	p.find("id", "p-1")
	position := value[string](p, `document.querySelector("tbody tr").cells[3].innerText.split("\n")[0]`)

	p.seek("position", position)
	p.says("#decision", "p-2")
	require.False(t, value[bool](p, `document.querySelector("#decision").innerText.includes("p-0")`))
	p.approve("the receiver lost one")
	require.Equal(t, position, pgtest.Value[string](t, w.pool, "SELECT position FROM public.cursor"))

	p.seek("time", pgtest.Value[string](t, w.pool, `SELECT to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') FROM public.payments WHERE id = 'p-1'`))
	p.says("#decision", "p-1")
	p.approve("the receiver lost two")
	w.command("resume", "payments")
	w.eventually(func() bool { return len(w.receiver.bodies("number")) == 5 })
	require.Len(t, w.receiver.bodies("n0"), 1)
	require.Len(t, w.receiver.bodies("n1"), 2)
	require.Len(t, w.receiver.bodies("n2"), 2)
}

// What an operator has chosen and typed stays while the page replaces the form, and so does the field in which they type.
func TestProcess_AFormKeepsWhatIsTypedWhileItIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"payments", "payments", ""})
	p := w.ada()
	p.openSeek()
	p.enter(`#seek input[name="at-time"]`, "2026-11-28T")
	require.Equal(t, "time", p.chosen(), "a place that is typed chooses its kind")
	w.command("pause", "payments", "--reason", "a test")
	p.until(`document.querySelector('button[aria-label="Preview of resume"]') !== null`)
	require.Equal(t, "time", p.chosen())
	require.Equal(t, "2026-11-28T", value[string](p, `document.querySelector('#seek input[name="at-time"]').value`))
	require.Equal(t, "at-time", value[string](p, `document.activeElement.name ?? ""`))
}

// A click is one although the page has news of the part while the button is down.
func TestProcess_APartIsNotReplacedUnderAPressedPointer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"payments", "payments", ""})
	p := w.ada()
	p.openSeek()
	p.until(`(window.news = 0, addEventListener("htmx:sseBeforeMessage", function (e) { if (e.detail.data.includes("Preview of resume")) news++; }), true)`)
	point := value[struct{ X, Y float64 }](p, `(function () {
		var radio = document.querySelector('#seek input[value="end"]');
		radio.scrollIntoView({ block: "center" });
		var box = radio.getBoundingClientRect();
		return { X: box.x + box.width / 2, Y: box.y + box.height / 2 };
	})()`)
	mouse := func(kind input.DispatchMouseEventType) {
		p.do(command(input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: point.X, Y: point.Y, Button: input.MouseButtonLeft, ClickCount: 1}))
	}
	mouse(input.DispatchMouseEventTypeMousePressed)
	w.command("pause", "payments", "--reason", "a test")
	p.until("news > 0")
	require.Equal(t, "id", p.chosen())
	mouse(input.DispatchMouseEventTypeMouseReleased)
	p.until(`document.querySelector('button[aria-label="Preview of resume"]') !== null`)
	require.Equal(t, "end", p.chosen())
}

// openSeek opens the page of the process payments and its form of a seek.
func (p *tab) openSeek() {
	p.t.Helper()
	p.open("/processes/payments")
	p.until(`document.querySelector('button[aria-label="Preview of pause"]') !== null`)
	p.click("#seek summary")
	p.until(`document.querySelector("#seek").open`)
}

// chosen is the kind of place that the form of a seek has.
func (p *tab) chosen() string {
	p.t.Helper()
	return value[string](p, `document.querySelector('#seek input[name="to"]:checked').value`)
}

func TestProcess_ADecisionOnWhatHasChangedIsNotMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"payments", "payments", ""})
	w.receiver.refuse("-5", "the amount is negative")
	w.insert("payments", "p-1", "barbara", `{"amount": -5, "number": 1}`)
	w.insert("payments", "p-2", "barbara", `{"amount": -5, "number": 2}`)
	p := w.ada()
	p.open("/processes/payments")
	p.says("#standing", "halted")
	p.press("skip")
	w.command("skip", "payments", "--reason", "by another operator")
	w.eventually(func() bool {
		return pgtest.Value[bool](t, w.pool, "SELECT EXISTS (SELECT FROM public.cursor WHERE state = 'halted' AND sequence > 0)")
	})
	p.allow("409")
	p.enter("#reason", "too late")
	p.click("#decision form button")
	p.says("#decision", "Something has changed since")
	require.Equal(t, 1, pgtest.Value[int](t, w.pool, "SELECT count(*)::int FROM public.cursor_event WHERE action = 'skip'"))
	p.click("#decision form button") // a new preview
	p.says("#decision", "p-2")
}

func TestProcess_WhoMayOnlyReadSeesNoButtonAndNoPayload(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"payments", "payments", ""})
	w.receiver.refuse("-5", "the amount is negative")
	w.insert("payments", "p-1", "barbara", `{"amount": -5, "card": "4111-1111"}`)
	p := newTab(t, w.url)
	p.logIn(readToken)
	p.open("/processes/payments")
	p.says("#head", "p-1")
	p.says("#head", "The payload is hidden")
	p.says("#actions", "You may look and not decide")
	require.False(t, value[bool](p, `document.body.innerText.includes("4111")`))
	require.Zero(t, value[int](p, `document.querySelectorAll("#actions form").length`))
}

func TestProcess_TheSessionThatHoldsTheFenceIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, process{"payments", "payments", ""})
	open := pgtest.Connect(t, pgtest.With(t, pgtest.URL(t), "application_name", "nightly-report"))
	pgtest.Begin(t, open, "INSERT INTO public.payments (id, customer) VALUES ('p-1', 'ada')")
	w.insert("payments", "p-2", "tony", `{}`)
	p := w.ada()
	p.open("/processes/payments")
	p.says("#blocker", "nightly-report")
	p.says("#standing", "fence")
	p.says("#holds", "fence")
	p.says("#facts", "the oldest for")
}
