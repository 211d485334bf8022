package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// fact is what the figures depend on.
type fact struct{ name, value string }

// machine says where and with what the figures were taken.
func (b *bench) machine(ctx context.Context, o options) ([]fact, error) {
	server, err := b.serverFacts(ctx)
	if err != nil {
		return nil, err
	}
	command := strings.Join(append([]string{"go run ./proof/bench"}, o.args...), " ")
	return []fact{
		{"machine", fmt.Sprintf("%d cores%s, memory %s", runtime.NumCPU(), processorModel(), totalMemory())},
		{"system", operatingSystem()},
		{"Go", fmt.Sprintf("%s, pgx %s", runtime.Version(), moduleVersion("github.com/jackc/pgx/v5"))},
		{"PostgreSQL", server},
		{"date", time.Now().UTC().Format(time.DateOnly)},
		{"command", "`" + command + "`"},
	}, nil
}

// What is not PostgreSQL's default is named, and what the figures hang on.
const serverSQL = `/* bench.server */
SELECT
	current_setting('server_version'),
	current_setting('fsync'),
	current_setting('synchronous_commit'),
	current_setting('shared_buffers')`

func (b *bench) serverFacts(ctx context.Context) (string, error) {
	var version, fsync, synchronous, buffers string
	if err := b.pool.QueryRow(ctx, serverSQL).Scan(&version, &fsync, &synchronous, &buffers); err != nil {
		return "", fmt.Errorf("ask the server for its settings: %w", err)
	}
	return fmt.Sprintf("%s on the same machine, fsync %s, synchronous_commit %s, shared_buffers %s",
		version, fsync, synchronous, buffers), nil
}

func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == path {
				return module.Version
			}
		}
	}
	return "of an unknown version"
}

// The files of Linux say more; elsewhere the table says less.

func processorModel() string {
	if model := find("/proc/cpuinfo", `(?m)^model name\s*:\s*(.+)$`); model != "" {
		return " (" + model + ")"
	}
	return ""
}

func totalMemory() string {
	kilobytes, err := strconv.ParseFloat(find("/proc/meminfo", `(?m)^MemTotal:\s*(\d+) kB$`), 64)
	if err != nil {
		return "unknown"
	}
	return figure(kilobytes/(1<<20)) + " GiB"
}

func operatingSystem() string {
	name := find("/etc/os-release", `(?m)^PRETTY_NAME="?([^"\n]+)"?$`)
	if kernel := find("/proc/sys/kernel/osrelease", `(\S+)`); kernel != "" {
		name += ", kernel " + kernel
	}
	return strings.TrimPrefix(name+", "+runtime.GOOS+"/"+runtime.GOARCH, ", ")
}

// find returns what the parentheses of a pattern match in a file, or "".
func find(path, pattern string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	match := regexp.MustCompile(pattern).FindSubmatch(content)
	if match == nil {
		return ""
	}
	return string(match[1])
}
