// Package broker starts real message brokers from the programs of this machine. Each runs in a throw-away directory,
// on ports of its own or on requested ones. Tests start them through brokertest. Measurements and `make services` use
// this package.
//
// # Nouns
//
//   - Broker: a running program with its files. It ends with Close, and with the program that started it.
//
// # Diagram
//
//	StartX ──► Broker ── Kill, Start ──► the same files, a new program
//	              └───── Close ────────► nothing is left
package broker
