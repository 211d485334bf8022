package main_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// howto opens a page whose references to the environment have a value.
func howto(t *testing.T, path string) (p *page, address string) {
	t.Helper()
	address = pgtest.URL(t)
	p = openPage(t, path, address)
	p.env = append(p.env, "SECRET=a-secret-of-thirty-two-bytes-xxx")
	return p, address
}

// TestChooseASource_EachSourceDelivers: the outbox has what the page's INSERT and its trigger put into it.
func TestChooseASource_EachSourceDelivers(t *testing.T) {
	t.Parallel()
	p, _ := howto(t, "../../docs/choose-a-source.md")
	p.run("ordered-dispatcher migrate up")
	for _, heading := range p.headings() {
		p.carryOut(heading)
	}
	p.save("all.yaml", "processes: {a: {source: {table: public.outbox, preset: outbox}, start: beginning, sink: {stdout: {}}}}")
	p.run("ordered-dispatcher run --drain -c all.yaml")
	p.expect(`…"key":"Ada","type":"order.paid",…"amount":30…` + "\n" + `…"key":"Ada","type":"order.new",…` + "\n" + `…"key":"Ada","type":"order.paid",…"state":"paid"…` + "\n")
}

func TestTenants_EachHasAProcess(t *testing.T) {
	t.Parallel()
	p, address := howto(t, "../../docs/tenants.md")
	p.run("ordered-dispatcher migrate up")
	headings := p.headings()
	require.Equal(t, []string{"", "One process for all tenants", "One process for each tenant", "One process for a group of tenants"}, headings)
	p.carryOut("")
	receiver := slow(t)
	close(receiver.answer)
	execute(t, pgtest.Pool(t, address, pgtest.PoolConfig{}), `INSERT INTO public.tenants VALUES ('a', '`+receiver.URL+`/a'), ('b', '`+receiver.URL+`/b'), ('x: y', 'left out');
		INSERT INTO public.orders (tenant, amount) VALUES ('a', 1), ('b', 2), ('a', 3)`)
	for _, heading := range headings[1:] {
		p.carryOut(heading)
	}
	p.run("ordered-dispatcher run --drain -c dispatcher.yaml")
	require.EqualValues(t, 3, receiver.requests.Load())
	pool := pgtest.Pool(t, address, pgtest.PoolConfig{})
	require.Equal(t, 2, sequence(t, pool, "orders_a"))
	require.Equal(t, 1, sequence(t, pool, "orders_b"))
}

func TestDeploys_NoRecordIsLostOrSentTwice(t *testing.T) {
	t.Parallel()
	p, _ := howto(t, "../../docs/deploys.md")
	p.run(`ordered-dispatcher migrate up && psql "$DATABASE_URL" -c "CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		created_at timestamptz NOT NULL DEFAULT clock_timestamp(), customer text NOT NULL, amount int NOT NULL)" -c "CREATE INDEX ON orders (created_at, id)" \
		-c "INSERT INTO orders (customer, amount) VALUES ('Ada', 30)"`)
	for _, heading := range p.headings() {
		p.carryOut(heading)
	}
	p.run(`ordered-dispatcher status -c dispatcher.yaml --json`)
	require.Contains(t, p.printed.String(), `"sequence":"2"`)
}
