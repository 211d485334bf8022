// Package broker starts real message brokers: each in a throw-away directory, on
// ports of its own or on those asked for, from the programs of this machine. Tests
// start them through brokertest, measurements and `make services` from here.
//
// # Nouns
//
//   - Broker: a running program with its files. It ends with Close, and with the
//     program that started it.
//
// # Diagram
//
//	StartX ──► Broker ── Kill, Start ──► the same files, a new program
//	              └───── Close ────────► nothing is left
package broker
