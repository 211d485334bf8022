// Package console has the pages that a browser shows: what a desk answers, and the forms with which an operator decides.
// Each page can be read without script. With it, rows and sections change as the board looks.
//
// # Nouns
//
//   - Console (console.go): serves all pages.
//   - Frame (frame.go): what every page has: its title, the links, and who looks.
//   - Part (live.go): a piece of a page that a stream of events replaces. A stream sends only parts that have changed.
//   - Sheet (head.go): a box of facts, as of the record at the head.
//   - Panel (decide.go): what an order would do, with the form that asks for the reason; then what was done.
//   - Long (text.go): a text that others wrote, cut, with all of it one step away.
//   - Fault: a page that says why there is no other one.
//
// # Invariants
//
//   - Everything that the database or a receiver gave is text: html/template escapes it, and hidden characters are shown
//     by their numbers.
//   - No page needs anything of another host, and none has a script or a style within it: package admin forbids both to
//     the browser.
//   - A GET changes nothing. An address has no data of a record.
//   - A decision is made only with what its preview showed (desk.Approval.Expect).
//
// # Left out
//
// Who may look and who may decide: package admin, which puts a visitor into each request, and checks the token of each
// POST before it comes here.
package console
