package console

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// TestPictures makes the pictures of the documentation: a fleet on a bad day. Without CONSOLE_SHOTS it only visits the pages.
func TestPictures(t *testing.T) {
	w := newWorld(t,
		process{"billing_invoices", "invoices", ""},
		process{"billing_payments", "payments", ""},
		process{"crm_contacts", "contacts", ""},
		process{"crm_leads", "leads", ""},
		process{"loyalty_points", "points", "    limit: 40/s\n"},
		process{"search_products", "products", "    retry: {initial: 1s, max: 20s}\n"},
		process{"sms_bookings", "bookings", "    on_poison: dead_letter\n"},
		process{"warehouse_orders", "stock", ""},
	)
	w.badDay()
	p := w.ada()
	p.decides("crm_contacts", "pause", "the receiver is deployed")
	p.decides("crm_contacts", "resume", "the receiver runs again")
	p.decides("warehouse_orders", "pause", "the warehouse counts its stock until 10:00")
	p.open("/")
	p.says("#needs", "billing_payments")
	if os.Getenv("CONSOLE_SHOTS") != "" {
		for points := 3; points < 8; points += 2 { // each takes ten seconds
			p.until(fmt.Sprintf(`document.querySelector(".spark .edge")?.getAttribute("d").split(/[ML]/).length > %d`, points))
		}
	}
	p.open("/")
	p.until(`document.documentElement.dataset.live === "on"`)
	p.shoot("fleet")
	p.open("/?group=prefix")
	p.until(`document.documentElement.dataset.live === "on"`)
	p.shoot("grouped")

	p.open("/processes/billing_payments")
	p.says("#head", "the amount is negative")
	p.shoot("process")
	p.press("skip")
	p.enter("#reason", "the order was cancelled: ticket OPS-1432")
	p.shoot("preview")
	p.approve("")

	p.do(chromedp.EmulateViewport(1360, 1500))
	p.open("/processes/crm_leads")
	p.says("#blocker", "nightly-report")
	p.says("#holds", "fence")
	p.shoot("fence")
	p.open("/processes/loyalty_points")
	p.until(`document.querySelector(".plot canvas") !== null`)
	p.says("#tail", "pt-")
	p.shoot("backfill")
	p.do(chromedp.EmulateViewport(1360, 900))

	p.find("key", "grace")
	p.shoot("find")
	p.open("/letters")
	p.says("main", "not a phone number")
	p.shoot("letters")
	p.open("/letters/1")
	p.shoot("letter")
	p.open("/audit?decisions=yes")
	p.says("main", "pause")
	p.shoot("audit")
	p.open("/doctor")
	p.shoot("doctor")
	p.open("/login")
	p.shoot("login")
	p.do(chromedp.EmulateViewport(400, 860))
	p.open("/")
	p.shoot("narrow")
}

// decides decides about a process on its page.
func (p *tab) decides(process, verb, reason string) {
	p.t.Helper()
	p.open("/processes/" + process)
	p.press(verb)
	p.approve(reason)
}

// badDay gives each process of the fleet a trouble of its own, and keeps records coming until the test ends.
func (w *world) badDay() {
	w.t.Helper()
	w.receiver.refuse(`-5`, "the amount is negative")
	w.receiver.refuse(`"to": "x`, "not a phone number")
	w.receiver.close("products")
	pgtest.Exec(w.t, w.pool, `
		INSERT INTO public.points (id, customer, payload) SELECT 'pt-' || n, 'customer-' || n % 50, jsonb_build_object('points', n % 90) FROM generate_series(1, 9000) n;
		INSERT INTO public.payments (id, customer, payload) SELECT 'pay-' || n, 'customer-' || n % 50, jsonb_build_object('amount', n, 'currency', 'EUR') FROM generate_series(1, 400) n;`)
	w.insert("payments", "pay-401", "barbara", `{"amount": -5, "currency": "EUR", "note": "refund of pay-233"}`)
	for i := range 6 {
		w.insert("bookings", fmt.Sprint("b-", i), "grace", fmt.Sprintf(`{"to": "x%d", "text": "your table is booked"}`, i))
	}
	open := pgtest.Connect(w.t, pgtest.With(w.t, pgtest.URL(w.t), "application_name", "nightly-report"))
	pgtest.Begin(w.t, open, "INSERT INTO public.leads (id, customer) VALUES ('lead-0', 'ada')")
	ctx, stop := context.WithCancel(context.WithoutCancel(w.t.Context()))
	var all sync.WaitGroup
	w.t.Cleanup(func() {
		stop()
		all.Wait()
	})
	all.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			for _, table := range []string{"invoices", "payments", "contacts", "leads", "products", "bookings", "stock"} {
				// The connections are the test's own, and end with it.
				_, _ = w.pool.Exec(ctx, fmt.Sprintf(`INSERT INTO public.%[1]s (id, customer, payload) SELECT '%[1]s-%[2]d-' || n, 'customer-' || n, '{"to": "+49 30 1234"}' FROM generate_series(1, $1) n`, table, i), 2+(i/9+len(table))%7)
			}
			select {
			case <-time.After(300 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
}
