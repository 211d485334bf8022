package table

import "context"

// Count implements processor.Counter: it counts up to MaxLagRecords records, whether
// or not they may be read yet.
func (s *Source) Count(ctx context.Context) (records int64, more bool, err error) {
	lag, err := s.Lag(ctx, "")
	return lag.Records, lag.Records >= MaxLagRecords, err
}
