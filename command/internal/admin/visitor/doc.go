// Package visitor is what package admin has found out about the person or program that sent a request. The pages read
// it, and admin writes it, so neither needs to know the other.
//
// # Nouns
//
//   - Visitor: who asks, and what that one may do.
//   - Token of a form (Visitor.CSRF): shows that a POST comes from a page that this visitor got.
//
// # Invariants
//
//   - Every request that reaches a page has a visitor. The zero Visitor may do nothing.
//
// # Left out
//
// How admin finds it out.
package visitor
