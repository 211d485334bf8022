package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// leastVersion is the first one whose scripts keep the code of an error.
const leastVersion = 7

// check looks at Redis over a connection of its own, and changes nothing. Its error says why no record can go there.
func (s *Sink) check(ctx context.Context) ([]sinks.Finding, error) {
	l, err := s.open(ctx)
	if err != nil {
		return nil, s.guard.Error(s.unsent(err))
	}
	defer l.close()
	ctx, end := l.within(ctx, s.config.Timeout)
	defer end()
	if err := s.checkStream(ctx, l); err != nil {
		return nil, s.guard.Error(err)
	}
	text, err := l.conn.Info(ctx).Result()
	if refusesUs(err) {
		return append(s.settings(), sinks.Finding{Severity: cursor.Note, Problem: "the user of Redis may not run INFO: how Redis keeps its data was not looked at", Fix: "ACL SETUSER … +info +config|get"}), nil
	}
	if err != nil {
		return nil, s.guard.Error(s.unsent(ended(ctx, heard(err))))
	}
	info := parseInfo(text)
	if fault := info.unusable(); fault != "" {
		return nil, fmt.Errorf("%s: %s", s.server, fault)
	}
	settings, _ := l.conn.ConfigGet(ctx, "appendfsync").Result() // "" where the user may not know
	return append(s.settings(), info.findings(settings["appendfsync"])...), nil
}

// checkStream finds a key that is no stream.
func (s *Sink) checkStream(ctx context.Context, l *link) error {
	if !s.stream.Fixed() {
		return nil
	}
	is, err := l.conn.Type(ctx, s.config.Stream).Result()
	switch {
	case code(err) == codeNoPermission: // which no delivery needs
		return nil
	case err != nil:
		return s.unsent(ended(ctx, heard(err)))
	case is != "stream" && is != "none":
		return fmt.Errorf("append to %s: the key is not a stream: correct stream, or delete the key", s)
	default:
		return nil
	}
}

// settings are findings about the configuration.
func (s *Sink) settings() []sinks.Finding {
	if s.config.MaxLen == 0 {
		return nil
	}
	return []sinks.Finding{{Severity: cursor.Warn, Problem: fmt.Sprintf("%s keeps about %d entries: older ones are removed, read or not", s, s.config.MaxLen),
		Fix: "leave max_len out, and have consumers remove what they have read (XTRIM MINID), if each record must be read"}}
}

// info is what INFO says.
type info map[string]string

func parseInfo(text string) info {
	all := info{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			all[name] = value
		}
	}
	return all
}

// unusable says why no record can go to a server; "" if one can.
func (i info) unusable() string {
	major, _, _ := strings.Cut(i["redis_version"], ".")
	version, err := strconv.Atoi(major)
	switch {
	case err == nil && version < leastVersion:
		return fmt.Sprintf("Redis has version %d, and the sink needs %d or later: upgrade Redis", version, leastVersion)
	case i["cluster_enabled"] == "1":
		return fixCluster
	case i["role"] == "slave":
		return "this is a replica, which takes no records: name the master in url"
	default:
		return ""
	}
}

// findings are about how Redis keeps what it has acknowledged.
func (i info) findings(fsync string) (all []sinks.Finding) {
	add := func(severity cursor.Severity, problem, fix string) {
		all = append(all, sinks.Finding{Severity: severity, Problem: problem, Fix: fix})
	}
	switch {
	case i["aof_enabled"] == "0":
		add(cursor.Warn, "Redis has appendonly off: a restart or a crash loses what was acknowledged since the last snapshot", "CONFIG SET appendonly yes, and CONFIG REWRITE")
	case fsync == "no":
		add(cursor.Warn, "Redis has appendfsync no: a power cut loses what the system had not written to the disk", "CONFIG SET appendfsync always (or everysec), and CONFIG REWRITE")
	case fsync == "everysec":
		add(cursor.Note, "Redis has appendfsync everysec: a power cut loses a second or two of what was acknowledged", "CONFIG SET appendfsync always, if that is too much")
	}
	if i["maxmemory"] != "0" && strings.HasPrefix(i["maxmemory_policy"], "allkeys-") {
		add(cursor.Warn, "Redis has a maxmemory-policy for all keys: when it is full, it deletes whole streams and their state, read or not", "CONFIG SET maxmemory-policy noeviction, under which delivery waits, and CONFIG REWRITE")
	}
	if i["connected_slaves"] != "" && i["connected_slaves"] != "0" {
		add(cursor.Note, "Redis replicates asynchronously: a failover loses what the new master does not have, and the sink says so where it can", "see docs/sinks/redis.md, A failover")
	}
	return all
}
