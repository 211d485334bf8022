// Package admin is the door to the desk: it finds out who sends a request, decides what that one may do, and serves the
// JSON API. The pages get only requests that may pass.
//
// # Nouns
//
//   - Gate (gate.go): what every request passes, in this order: the headers of its answer, the host, the method and the
//     size, who sends it (login.go), what that one may do, and whether a browser was tricked into sending it (csrf.go).
//   - Login (login.go): who somebody is, and how that was found out: a token, a password, a proxy's header, a session, or
//     the machine itself.
//   - Session (session.go): a login on the page. The browser has a random cookie, and the daemon its digest.
//   - Failures (failures.go): how often logins of one address failed of late.
//   - API (api.go): what package desk offers, as JSON. openapi.yaml describes it, and is a part of the program.
//
// # Diagram
//
//	request ──► headers ──► host ──► size ──► login ──► rights ──► CSRF ──┬─► API   ──► desk
//	             (strict)   (421)   (413)   (401, 429)   (403)     (403)  └─► pages ──► desk
//
// # Invariants
//
//   - Without a login nothing is decided. Without a login, only the machine itself may look, and only if the daemon
//     listens on its loopback.
//   - The header of a proxy counts only from the addresses that the file lists.
//   - A secret is compared in constant time, by its digest. It is in no answer and in no log line.
//   - A POST from a browser needs the token of the visitor's page, and comes from that page's origin.
//   - No record data is in a URL: a proxy and a browser's history keep URLs.
//   - Sessions, failures, streams and bodies have bounds.
//
// # Left out
//
// TLS: a proxy before the daemon has it. Metrics, health and records keep their own routes, and their own rules.
package admin
