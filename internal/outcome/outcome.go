// Package outcome marks a sink's error with what it means for the record: was the record delivered, or may it have
// been. The processor takes a time-out for the latter.
package outcome

import "errors"

// Known returns an error for a record that was not delivered. It is not a time-out, even if its cause is one.
func Known(err error) error {
	if IsUnknown(err) {
		return Text(err)
	}
	return err
}

// Text returns an error with the text of another one, and without its other meaning for the record. A secret.Guard
// finds the receiver's words in it.
func Text(err error) error { return &text{err} }

type text struct{ of error }

func (t *text) Error() string { return t.of.Error() }

// Quoted returns the error that has the text.
func (t *text) Quoted() error { return t.of }

// Unknown returns an error for a record that may have been delivered. It is a time-out, whatever its cause.
func Unknown(err error) error { return &unknown{err} }

// IsUnknown reports whether the processor takes the outcome for unknown.
func IsUnknown(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// Outage returns an error for a record that may have been delivered; if it was not, the receiver took no record at
// all. So its outcome is unknown, and inside processor.Unreached it does not count as an attempt of the record.
func Outage(err error) error { return &outage{&unknown{err}} }

// IsOutage reports whether an error is one of Outage, or wraps one.
func IsOutage(err error) bool {
	var o *outage
	return errors.As(err, &o)
}

type outage struct{ error }

func (e *outage) Unwrap() error { return e.error }

type unknown struct{ error }

func (e *unknown) Unwrap() error { return e.error }

// Timeout returns true.
func (e *unknown) Timeout() bool { return true }

// Refusal returns an error for one record that the receiver, or its protocol, refused. The sink's connection to the
// receiver is intact.
func Refusal(err error) error { return &refusal{err} }

// IsRefusal reports whether an error is one of Refusal, or wraps one.
func IsRefusal(err error) bool {
	var r *refusal
	return errors.As(err, &r)
}

// NoTime returns the error of the first record that a call did not send, because too little of its time was left.
// Nothing failed: the records before it are acknowledged, and none is on its way.
func NoTime(err error) error { return &noTime{err} }

// IsNoTime reports whether an error is one of NoTime, or wraps one.
func IsNoTime(err error) bool {
	var n *noTime
	return errors.As(err, &n)
}

type noTime struct{ error }

func (e *noTime) Unwrap() error { return e.error }

// Final returns a refusal that other credentials would not change. A sink that is made anew with them would not know
// of it.
func Final(err error) error { return &final{err} }

// IsFinal reports whether an error is one of Final, or wraps one.
func IsFinal(err error) bool {
	var f *final
	return errors.As(err, &f)
}

type final struct{ error }

func (e *final) Unwrap() error { return e.error }

type refusal struct{ error }

func (e *refusal) Unwrap() error { return e.error }
