// Package brokertest starts real message brokers for tests from the programs of this machine. Each has a directory
// and ports of its own, and ends with the test.
//
// If a broker's program is not on this machine, the test is skipped. If CI is set, it fails: see pgtest.Require.
package brokertest
