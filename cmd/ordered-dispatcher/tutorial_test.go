package main_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pglocal/throwaway"
	"github.com/ordered-dispatcher/ordered-dispatcher/internal/pgtest"
)

// TestTutorial_GoesAsDescribed carries out docs/tutorial.md block by block, except for the program and the database, which the tests
// have already.
func TestTutorial_GoesAsDescribed(t *testing.T) {
	t.Parallel()
	pgtest.Require(t, "python3")
	port, err := throwaway.FreePort()
	require.NoError(t, err)
	p := openPage(t, "../../docs/tutorial.md", pgtest.URL(t), "8000", strconv.Itoa(port))
	require.Equal(t, []string{"Install the program", "Get a database", "Make a table", "Start a receiver", "Deliver",
		"A record that fails for good", "Kill a worker", "Deliver everything again"}, p.headings())
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	require.Contains(t, p.blocks[0].text, "make -C ordered-dispatcher build\n")
	require.Contains(t, string(makefile), "\nbuild: ")
	require.Contains(t, string(makefile), "\npostgres: ")

	begun := time.Now()
	p.carryOut("Make a table")
	p.carryOut("Start a receiver")
	p.carryOut("Deliver")
	t.Logf("first delivery after %d s", int(time.Since(begun).Seconds())+1) // rounded up, for tools/newcomer
	for _, heading := range p.headings()[5:] {
		p.carryOut(heading)
	}
}
