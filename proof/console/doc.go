// Package console drives the pages of the daemon in a real Chromium, as a person would: the daemon is the real one, with a
// real PostgreSQL, and the receiver is a web server that the test controls.
//
// Each page that a test opens is watched (page_test.go): a fault of a script, a breach of the policy of content, or a
// request to another host fails the test.
//
// The tests make the pictures of the documentation, too: with CONSOLE_SHOTS, the name of a directory, they write each
// page in light and in dark there. `make screenshots` does that.
package console
