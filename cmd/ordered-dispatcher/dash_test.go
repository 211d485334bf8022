package main_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProcessRename_ANameLikeAFlagIsLeftBehind: no file may have such a name, and a cursor
// that has it from earlier is reached behind the two dashes.
func TestProcessRename_ANameLikeAFlagIsLeftBehind(t *testing.T) {
	t.Parallel()
	address, pool := database(t, 2)
	for _, name := range []string{"-x", "--to-end", "(x", "<x"} {
		code, _, stderr := do(t, address, "check", "-c", named(t, "'"+name+"'", ""))
		require.Equal(t, 2, code)
		require.Contains(t, stderr, "must begin with a letter, a digit or _, and not with "+name[:1]+":")
		require.Contains(t, stderr, "`ordered-dispatcher process rename -- '"+name+"' NEW`")
	}
	for _, name := range []string{"_x", "1x", "é-x", "a"} {
		must(t, address, "check", "-c", named(t, name, ""))
	}
	execute(t, pool, "INSERT INTO public.cursor (process_name, position) VALUES ('-x', ''), ('--to-end', '')")
	require.Contains(t, must(t, address, "process", "rename", "-c", named(t, "x", ""), "--reason=a flag", "--", "-x", "x"), "-x is called x now")
	require.Contains(t, must(t, address, "process", "forget", "--reason=a flag", "--", "--to-end"), "the cursor of --to-end is deleted")
	require.Len(t, ids(t, must(t, address, "run", "--drain", "-c", named(t, "x", ""))), 2)
}
