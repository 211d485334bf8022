package knob

import "fmt"

// Faults collects what is wrong with a configuration, so that its user reads all of it at once. errors.Join makes
// one error of it.
type Faults []error

// If adds a fault if bad is true.
func (f *Faults) If(bad bool, format string, args ...any) {
	if bad {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}
