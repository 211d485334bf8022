package processor

import "time"

// AskWithin shortens what a round may ask the database for.
func (p *Process) AskWithin(d time.Duration) { p.patience = d }
