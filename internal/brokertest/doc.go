// Package brokertest starts real message brokers for tests: each in a directory of
// its own on ports of its own, from the programs of this machine, and gone with
// the test.
//
// A broker that is not on this machine skips the test, and fails it where CI is
// set: see pgtest.Require.
package brokertest
