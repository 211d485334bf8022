// Package outcome marks a sink's error with what it means for its record, besides its text: the record was not
// delivered, or it may have been. The processor takes a time-out for the latter.
package outcome

import "errors"

// Known returns an error of a record that was not delivered. It is not a time-out, though a time-out may be its
// cause.
func Known(err error) error {
	if IsUnknown(err) {
		return Text(err)
	}
	return err
}

// Text returns an error with only the text of another one. It drops everything else that the other error means
// for the record. A secret.Guard finds the receiver's text in it.
func Text(err error) error { return &text{err} }

type text struct{ of error }

func (t *text) Error() string { return t.of.Error() }

// Quoted returns the error that the text comes from.
func (t *text) Quoted() error { return t.of }

// Reworded returns an error with another text, and everything that the error means for the record.
func Reworded(err error, text string) error { return &reworded{text, err} }

type reworded struct {
	text string
	of   error
}

func (r *reworded) Error() string { return r.text }

func (r *reworded) Unwrap() error { return r.of }

// Unknown returns an error of a record that may have been delivered. It is a time-out, whether or not its cause
// is one.
func Unknown(err error) error { return &unknown{err} }

// IsUnknown reports whether the processor treats the outcome as unknown.
func IsUnknown(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// Outage returns an error of a call that an outage of the receiver ended. The record may have been delivered, so
// the outcome is unknown. If it was not delivered, the outage is the reason and not the record: wrap the error in
// processor.Unreached, and the attempt does not count for the record.
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

// Timeout returns true.
func (e *unknown) Timeout() bool { return true }

// AboutRecord returns the answer of a receiver, or of its protocol, about one record: the sink's connection to the
// receiver is intact. Compare processor.Refused, the receiver's refusal of us.
func AboutRecord(err error) error { return &aboutRecord{err} }

// IsAboutRecord reports whether an error is, or wraps, one of AboutRecord.
func IsAboutRecord(err error) bool {
	var r *aboutRecord
	return errors.As(err, &r)
}

// NoTime returns the error of the first record that a call did not send, because the rest of its time was too
// short. Nothing failed: the records before it are acknowledged, and none is on its way.
func NoTime(err error) error { return &noTime{err} }

// IsNoTime reports whether an error is, or wraps, one of NoTime.
func IsNoTime(err error) bool {
	var n *noTime
	return errors.As(err, &n)
}

type noTime struct{ error }

func (e *noTime) Unwrap() error { return e.error }

// ReportedOnce returns a refusal that the sink reports only once, and that other credentials would not change: a
// sink that was made anew does not know of it. So the processor keeps it until it is written.
func ReportedOnce(err error) error { return &reportedOnce{err} }

// IsReportedOnce reports whether an error is, or wraps, one of ReportedOnce.
func IsReportedOnce(err error) bool {
	var f *reportedOnce
	return errors.As(err, &f)
}

type reportedOnce struct{ error }

func (e *reportedOnce) Unwrap() error { return e.error }

type aboutRecord struct{ error }

func (e *aboutRecord) Unwrap() error { return e.error }
