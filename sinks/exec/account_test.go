//go:build unix

package exec

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAccountOf_OnlyRootCanChangeTheUser(t *testing.T) {
	t.Parallel()
	_, err := accountOf("nobody", 1000)
	require.ErrorContains(t, err, `user "nobody" needs ordered-dispatcher to run as root, and it runs as uid 1000`)
	a, err := accountOf("", 1000)
	require.NoError(t, err)
	require.Nil(t, a)
	a, err = accountOf("1234:5678", 0)
	require.NoError(t, err)
	require.Equal(t, &account{uid: 1234, gid: 5678}, a)
	a, err = accountOf("nobody", 0)
	require.NoError(t, err)
	require.NotZero(t, a.uid)
	require.Equal(t, "nobody", a.name)
	_, err = accountOf("no-such-account", 0)
	require.ErrorContains(t, err, "is not an account of this machine: make the account, or write uid:gid")
}

func TestValidate_AUserIsANameOrIDsAndNotRoot(t *testing.T) {
	t.Parallel()
	for user, want := range map[string]string{
		"": "", "nobody": "", "12": "", "12:0": "",
		"root": "must not be root", "0": "must not be root", "0:5": "must not be root", "00": "must not be root",
		"a:b": "uid:gid in figures", "12:": "uid:gid in figures", "4294967295:1": "uid:gid in figures", "a\x00": "user must be a name",
	} {
		err := Config{Command: []string{"x"}, User: user}.Validate()
		if want == "" {
			require.NoError(t, err, user)
		} else {
			require.ErrorContains(t, err, want, user)
		}
	}
}
