// Package tcptest is the far end of a connection, for tests: a listener that answers by a script. pgtest and
// brokertest have the behaviour of real servers. This package does what they never do, such as an answer without an
// end or one that repeats a password. Link adds a network between them and the client, which the test can break.
package tcptest
