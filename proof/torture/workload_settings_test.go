package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Daemons and operators differ at every moment, and each set comes to both of them.
func TestSettings_EachRoleHasASetOfItsOwn(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"operator", "worker"}, settingRoles())
	for choice, set := range roleSettings() {
		sql := settingsSQL(uint64(choice))
		require.True(t, strings.HasPrefix(sql, "ALTER ROLE operator RESET ALL;\n"))
		for _, setting := range set {
			require.Contains(t, sql, "ALTER ROLE operator SET "+setting+";\n")
		}
		require.Equal(t, len(set)+len(roleSettings()[(choice+1)%len(roleSettings())]), strings.Count(sql, " SET "))
	}
}
