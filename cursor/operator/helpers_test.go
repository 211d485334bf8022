package operator_test

import (
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/internal/cursortest"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

const (
	patience = cursortest.Patience
)

var (
	database      = cursortest.Database
	exec          = pgtest.Exec
	store         = cursortest.Store
	created       = cursortest.Created
	acquire       = cursortest.Acquire
	over          = cursortest.Over
	cause         = cursortest.Cause
	stranger      = cursortest.Stranger
	waitForLock   = cursortest.WaitForLock
	letter        = cursortest.Letter
	standing      = cursortest.Standing
	back          = cursortest.Back
	requireLeap   = cursortest.RequireLeap
	behind        = cursortest.Behind
	acquireLooked = cursortest.AcquireLooked
	poison        = cursortest.Poison
	granted       = cursortest.Granted
	events        = cursortest.Events
	alice         = cursortest.Alice
	look          = cursortest.Look
	history       = cursortest.History
	actionsOf     = cursortest.ActionsOf
)
