//go:build unix

package exec

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
