// Package receivers tests the receivers of all languages against the daemon and PostgreSQL. It has only tests, and a
// receiver in Go.
//
//	producers ──▶ outbox ──▶ daemon, killed again and again ──▶ wire ──▶ receiver of a language ──▶ inbox, booking
//	operator  ──▶ seeks back, replays dead letters                ▲
//	        a superseded worker, another database, a late request ─┘
//
// Nouns: a receiver is a program that books rooms. It gets PORT, DATABASE_URL and SECRET. The wire is a proxy that
// keeps each request, and loses each fifth answer.
//
// Invariants: each committed booking is in the receiver's table once. Those of the room that always exists are there
// in the order of the outbox. A request of an older epoch or of another origin, and one that its successors have
// overtaken, get 409 and change nothing.
//
// Left out: the signatures and answers one by one. Each receiver runs docs/wire-vectors.json in its own tests, which
// this package starts.
package receivers
