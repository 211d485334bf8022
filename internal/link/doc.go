// Package link puts a network between two parties on this machine, which tests can break.
//
//	client ──▶ Link.Addr ──▶ pump ──▶ target
//	              ▲            │ Stall, Cut, Tear
//	              └─── pump ◀──┘
//
// Invariants:
//
//   - The bytes of one side arrive on the other unchanged and in order, or the connection ends.
//   - Resume passes on the bytes that a stalled link holds, and Release those that a hold keeps, even if their
//     sender has given up and gone: a network does not know.
//   - A link keeps its address when its target changes.
//
// Left out: delays, bandwidth, UDP, and half-closed connections: when one side closes, so does the other.
package link
