package pglocal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Cached returns the directory of a name in the cache of fetched programs, which any user can read. If it does not
// exist, fill makes its content in another directory, which then takes its place. Of several processes at once, one
// fills.
func Cached(ctx context.Context, name string, fill func(ctx context.Context, dir string) error) (string, error) {
	cache, err := cacheDir(Config{})
	if err != nil {
		return "", err
	}
	target := filepath.Join(cache, name)
	if isDir(target) {
		return target, nil
	}
	unlock, err := lock(ctx, target+".lock")
	if err != nil {
		return "", fmt.Errorf("wait for another process that fetches %s: %w", name, err)
	}
	defer unlock()
	if isDir(target) {
		return target, nil
	}
	part := target + ".part"
	if err := os.RemoveAll(part); err != nil {
		return "", err
	}
	defer os.RemoveAll(part)
	if err := os.MkdirAll(part, 0o755); err != nil {
		return "", err
	}
	if err := fill(ctx, part); err != nil {
		return "", err
	}
	if err := makeReadable(part); err != nil {
		return "", err
	}
	return target, os.Rename(part, target)
}
