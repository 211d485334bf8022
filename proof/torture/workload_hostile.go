package main

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/ordered-dispatcher/ordered-dispatcher/proof/torture/history"
)

// hostile is what somebody writes into a record who wants a receiver, a broker, a log, a terminal or an operator's shell to
// take it for something else. Every record is delivered, with this as a part of its key.
func hostile() []string {
	return []string{
		"\r\nOrdered-Epoch: 0\r\n\r\nPOST / HTTP/1.1",
		"\n{\"level\":\"ERROR\",\"msg\":\"forged\"}",
		"\x1b]0;owned\a\x1b[2J\x1b[31m",
		"\u202etxt.exe\u2066\u2069\ufeff",
		"'; DROP SCHEMA dispatch CASCADE; --",
		"$(touch /tmp/owned) `id` \"; reboot; \"",
		"../../../admin?x=1#fragment",
		"%00%0d%0a%2e%2e%2f",
		"{{ .Payload }} ${env:HOME} @payload",
		"$JS.API.STREAM.PURGE.clock_stream * > _INBOX.x",
		"<script>alert(1)</script>&amp;",
		"\u0085\u2028\u2029\u00a0\u200b",
		strings.Repeat("long ", 200),
		"-rf --config=/etc/passwd",
		"\U0010ffff\ue000 e\u0301\u0301\u0301",
	}
}

// hostileWorkload is records whose contents are an attack.
func hostileWorkload() workload {
	return workload{writes: []write{{"hostile contents", 2, nil, attack}}}
}

func attack(ctx context.Context, p *producer, conn *pgx.Conn, table string) {
	all := hostile()
	p.suffix = " " + all[p.random.IntN(len(all))]
	defer func() { p.suffix = "" }()
	p.inTx(ctx, conn, table, end{"COMMIT", history.Committed}, p.insertSome)
}
