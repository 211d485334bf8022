package cursor

import "errors"

// ErrTx is what Commit and Rollback of a lease's transaction return: Advance commits it, together with the new
// position.
var ErrTx = errors.New("the transaction belongs to the lease: return nil to have it committed, an error to have it rolled back")
