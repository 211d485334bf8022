package cursor

import "time"

// Age lets a lease look as if its server had not been heard from for that long.
func Age(l *Lease, silence time.Duration) { l.answered.Add(-int64(silence)) }
