// Package waittest bounds the waits of tests. A test that waits in vain fails after two minutes, and says what it
// waited for. Without a bound it would take the time of all tests of its package, and no output would name it.
//
// For a condition that has to be asked for again and again, use require.Eventually of testify.
package waittest
