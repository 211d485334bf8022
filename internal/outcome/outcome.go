// Package outcome is what a sink's error says of its record beside the text: was it
// delivered, or may it have been. The processor takes a time-out for the latter.
package outcome

import "errors"

// Known is an error of a record that was not delivered: no time-out, though a
// time-out may be its cause.
func Known(err error) error {
	if IsUnknown(err) {
		return Text(err)
	}
	return err
}

// Text is an error with the text of another one, and with nothing that it says of the
// record besides. A secret.Guard finds in it what the receiver said.
func Text(err error) error { return &text{err} }

type text struct{ of error }

func (t *text) Error() string { return t.of.Error() }

// Quoted is the error that has the text.
func (t *text) Quoted() error { return t.of }

// Unknown is an error of a record that may have been delivered: a time-out, whatever
// its cause.
func Unknown(err error) error { return &unknown{err} }

// IsUnknown reports whether the processor takes the outcome for unknown.
func IsUnknown(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// Outage is an error of a record that may have been delivered; if it was not, the receiver took no record at all. So it is
// unknown, and with processor.Unreached around it no attempt of the record.
func Outage(err error) error { return &outage{&unknown{err}} }

// IsOutage reports whether an error is, or wraps, one of Outage.
func IsOutage(err error) bool {
	var o *outage
	return errors.As(err, &o)
}

type outage struct{ error }

func (e *outage) Unwrap() error { return e.error }

type unknown struct{ error }

func (e *unknown) Unwrap() error { return e.error }

// Timeout is true.
func (e *unknown) Timeout() bool { return true }

// Refusal is the word of a receiver, or of its protocol, on one record: what the
// sink has open to the receiver is whole.
func Refusal(err error) error { return &refusal{err} }

// IsRefusal reports whether an error is, or wraps, one of Refusal.
func IsRefusal(err error) bool {
	var r *refusal
	return errors.As(err, &r)
}

// NoTime is the error of the first record that a call did not send, since the rest of its time was too short.
// Nothing failed: the records before it are acknowledged, and none is on its way.
func NoTime(err error) error { return &noTime{err} }

// IsNoTime reports whether an error is, or wraps, one of NoTime.
func IsNoTime(err error) bool {
	var n *noTime
	return errors.As(err, &n)
}

type noTime struct{ error }

func (e *noTime) Unwrap() error { return e.error }

// Final is a refusal that other credentials would not change: a sink that is made anew with them
// would not know of it.
func Final(err error) error { return &final{err} }

// IsFinal reports whether an error is, or wraps, one of Final.
func IsFinal(err error) bool {
	var f *final
	return errors.As(err, &f)
}

type final struct{ error }

func (e *final) Unwrap() error { return e.error }

type refusal struct{ error }

func (e *refusal) Unwrap() error { return e.error }
