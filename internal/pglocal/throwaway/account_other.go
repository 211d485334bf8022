//go:build !unix

package throwaway

import (
	"errors"
	"os/exec"
)

type account struct{}

func unprivileged() (*account, error) {
	return nil, errors.New("a throw-away PostgreSQL needs Linux, macOS or another Unix; set DATABASE_URL to a running server instead")
}

func (*account) apply(*exec.Cmd) {}

func (*account) String() string { return "this user" }
