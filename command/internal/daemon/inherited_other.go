//go:build !unix

package daemon

// CloseOnExec does nothing on this system, where children get only their own three descriptors.
func CloseOnExec() error { return nil }
