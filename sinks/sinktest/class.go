package sinktest

import "github.com/ordered-dispatcher/ordered-dispatcher/processor"

// Class returns how the processor treats a sink's error: as "refused", "permanent", "unreached", "unknown" or
// "transient". An error that is both unreached and unknown is an "outage". The class of nil is "".
func Class(err error) string {
	switch {
	case err == nil:
		return ""
	case processor.IsRefused(err): // first, as in the processor: a refused call shows nothing about the record
		return "refused"
	case processor.IsPermanent(err):
		return "permanent"
	case processor.IsUnreached(err) && processor.IsUnknown(err):
		return "outage"
	case processor.IsUnreached(err):
		return "unreached"
	case processor.IsUnknown(err):
		return "unknown"
	default:
		return "transient"
	}
}
