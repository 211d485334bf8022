// Package tcptest is the far end of a connection, for tests: a listener that answers by
// a script. What the real servers do belongs to pgtest and brokertest; here is what
// they never do, such as an answer without an end or one that repeats a password.
package tcptest
