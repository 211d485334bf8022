// Package notify sends messages to people and other programs: a process halted, falls behind or has dead letters, or it
// has recovered.
//
// # Nouns
//
//   - Alarm: one event of one process, such as a halt: raised, reminded of, or recovered from (message.go).
//   - Message: the alarms that one target is told of at once.
//   - Target: who is told, and of which events (config.go). Its kind is Webhook, Slack, SMTP or Exec.
//   - Sender: sends messages to one target, and can try its address without a message (sender.go).
//
// # Diagram
//
//	package daemon: what is due, once over all workers ──► Message ──► Sender ──┬► signed webhook
//	                                                                           ├► Slack-compatible webhook
//	                                                                           ├► e-mail by SMTP
//	                                                                           └► program: JSON on standard input
//
// # Invariants
//
//   - A message has no data of a record: no id, no position, no payload, and no words of the receiver of records.
//   - An error contains no secret of its target.
//   - A call of a sender ends within its timeout. A child, and what it started, has ended by then.
//   - A redirect is never followed.
//
// # Left out
//
// When a message is due, who sends it, and what was sent before: package daemon decides that, with the database.
package notify
