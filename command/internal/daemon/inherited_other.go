//go:build !unix

package daemon

// CloseOnExec does nothing where children get no descriptors but their own three.
func CloseOnExec() error { return nil }
