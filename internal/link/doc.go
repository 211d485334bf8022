// Package link puts a network between two parties on this machine, to be broken at will.
//
//	client ──▶ Link.Addr ──▶ pump ──▶ target
//	              ▲            │ Stall, Cut, Tear
//	              └─── pump ◀──┘
//
// Invariants:
//
//   - Whatever arrives on one side arrives on the other unchanged and in order, or the connection ends.
//   - What a stalled link holds is passed on by Resume, and what a hold keeps by Release, even if its sender has given up and gone: a network does not know.
//   - A link keeps its address when its target changes.
//
// Left out: delays, bandwidth, UDP, and half-closed connections: when one side closes, so does the other.
package link
