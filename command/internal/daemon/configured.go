package daemon

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/sethvargo/go-retry"

	"github.com/ordered-dispatcher/ordered-dispatcher/cursor"
	"github.com/ordered-dispatcher/ordered-dispatcher/cursor/operator"
	"github.com/ordered-dispatcher/ordered-dispatcher/sinks"
)

// settings are the settings that decide which records a process delivers, in which order, in which form, and where to. Two workers
// that differ in them take turns, and each takes records from the other: a position of one means nothing to the
// other.
type settings map[string]string

// settings returns the settings of a process. They hold no secret: a setting that may contain one is present as a
// salted digest. The salt is the one that was noted last, so that two digests can be compared. Without a salt one
// could try likely secrets against the digests of many rows at once.
func (p Process) settings(salt string) settings {
	c := p.Source.Named()
	s := settings{"source.table": c.Table, "source.order": string(p.filled().Source.Order), "source.where": c.Where, "sink": p.Sink.Kind}
	for name, column := range map[string]string{
		"id": c.Columns.ID, "created_at": c.Columns.CreatedAt, "key": c.Columns.Key,
		"type": c.Columns.Type, "headers": c.Columns.Headers, "payload": c.Columns.Payload,
	} {
		s["source.columns."+name] = column
	}
	for name, value := range p.Sink.Config.Settings() {
		s["sink."+p.Sink.Kind+"."+name] = value
	}
	maps.Copy(s, p.shadowSettings())
	s["claims"] = placeOf(p.Claims)
	if p.Decompress {
		s["compressed"] = "decompress"
	}
	for typ, program := range p.Upcast {
		s[saltKey] = salt
		s["upcast."+typ] = digest(salt, program)
	}
	if sink, ok := p.Sink.Config.(sinks.Confidential); ok {
		s[saltKey] = salt
		for name, value := range sink.Confidential() {
			s["sink."+p.Sink.Kind+"."+name] = digest(salt, value)
		}
	}
	maps.DeleteFunc(s, func(_, value string) bool { return value == "" })
	return s
}

// placeOf returns the place of a store without a user and a password.
func placeOf(store string) string {
	u, err := url.Parse(store)
	if err != nil || u.User == nil {
		return store
	}
	u.User = nil
	return u.String()
}

// saltKey is the key under which the settings hold the salt of their digests.
const saltKey = "salt"

func digest(salt, text string) string {
	sum := hmac.New(sha256.New, []byte(salt))
	sum.Write([]byte(text)) // never fails: see hash.Hash
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)[:16])
}

// earlier is the configuration with which a process ran last.
type earlier struct {
	worker   string
	at       time.Time
	settings settings
}

// difference describes how now differs from the earlier configuration; "" if it does not.
func (e earlier) difference(now settings) string {
	var all []string
	for _, name := range e.settings.changed(now) {
		switch {
		case name == saltKey, name == meantKey: // the source refuses another table under the old name
		case name == "source.table" && e.settings[meantKey] == now[name]: // the new one includes the schema
		default:
			all = append(all, fmt.Sprintf("%s was %q and is %q here", name, e.settings[name], now[name]))
		}
	}
	return strings.Join(all, ", ")
}

// needsOther describes how the source of now takes other rows than the earlier one, or has another order; "" if it takes
// the same ones, or all of the table.
func (e earlier) needsOther(now settings) string {
	e.settings, now = e.settings.reads(), now.reads()
	if now["source.where"] == "" {
		delete(e.settings, "source.where")
	}
	return e.difference(now)
}

// reads are the settings that decide which rows are read, and in which order.
func (s settings) reads() settings {
	s = maps.Clone(s)
	maps.DeleteFunc(s, func(name, _ string) bool {
		return !slices.Contains([]string{"source.table", meantKey, "source.where"}, name) && !slices.Contains(orderKeys, name)
	})
	return s
}

// orderKeys are the settings that decide the order of the rows.
var orderKeys = []string{"source.order", "source.columns.id", "source.columns.created_at"}

// order are the settings of orderKeys.
func (s settings) order() settings {
	s = maps.Clone(s)
	maps.DeleteFunc(s, func(name, _ string) bool { return !slices.Contains(orderKeys, name) })
	return s
}

// changed returns the names of the settings that differ now, sorted.
func (s settings) changed(now settings) []string {
	names := settings{}
	maps.Copy(names, s)
	maps.Copy(names, now)
	maps.DeleteFunc(names, func(name, _ string) bool { return s[name] == now[name] })
	return slices.Sorted(maps.Keys(names))
}

const otherConfigurationFix = "if that worker still runs, both deliver in turns, each with its own configuration: " +
	"give all workers of a process the same configuration, or rename the process of one of them"

// maxConfigurations is how many configurations of a process are looked at.
const maxConfigurations = 100

// configurations returns those with which workers of a cursor's process were started, the newest first, also under its
// earlier names. Those of a former cursor of the name do not count.
func (c Config) configurations(ctx context.Context, pool *pgxpool.Pool, process string) (all []earlier, err error) {
	store, err := cursor.NewStore(pool, cursor.Config{Schema: c.Schema})
	if err != nil {
		return nil, err
	}
	events, err := operator.New(store).Events(ctx, process, "configure,forget,renamed", maxConfigurations)
	if err != nil {
		return nil, fmt.Errorf("read the last configuration of process %q: %w", process, err)
	}
	former := map[string]bool{}
	for _, event := range events {
		e := earlier{worker: event.Actor, at: event.At}
		switch {
		case event.Action != "configure":
			former[event.Process] = true
		case former[event.Process]:
		default:
			if err := json.Unmarshal(event.Detail, &e.settings); err != nil {
				return nil, fmt.Errorf("read the last configuration of process %q: %w", process, err)
			}
			all = append(all, e)
		}
	}
	return all, nil
}

// lastConfigured returns the configuration with which a worker of a process was started last; nil if none was.
func (c Config) lastConfigured(ctx context.Context, pool *pgxpool.Pool, process string) (*earlier, error) {
	all, err := c.configurations(ctx, pool, process)
	if len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

// mayRun returns the configurations with which a worker may deliver. The holder of the cursor may, and every worker that
// was started after it. If the holder has noted none, all count: see noteConfigured. The newest one is the first.
func mayRun(all []earlier, holder string) []earlier {
	if i := slices.IndexFunc(all, func(e earlier) bool { return e.worker == holder }); i >= 0 {
		return all[:i+1]
	}
	return all
}

// alike reports whether all configurations read the same rows, in one order.
func alike(all []earlier) bool {
	return !slices.ContainsFunc(all, func(e earlier) bool {
		e.settings = e.settings.reads()
		return e.difference(all[0].settings.reads()) != ""
	})
}

const configureSQL = `/* daemon.configure */
INSERT INTO {schema}.cursor_event (process_name, actor, action, detail)
VALUES ($1, $2, 'configure', $3::jsonb)`

// noteConfigured notes a configuration in the audit if it differs from the last one, and returns that last one. If
// two workers start at once, both may note theirs. The next start then finds the difference. Once two sources were
// noted, each worker notes its own. Otherwise it would not be known which of them the holder of the cursor has. It waits
// until no removal is under way that does not know of it.
func (c Config) noteConfigured(ctx context.Context, pool *pgxpool.Pool, p Process, worker string) (*earlier, error) {
	all, err := c.configurations(ctx, pool, p.Name)
	if err != nil {
		return nil, err
	}
	var last *earlier
	now := p.settings(rand.Text())
	if len(all) > 0 {
		last = &all[0]
	}
	if last != nil && last.settings[saltKey] != "" {
		now = p.settings(last.settings[saltKey])
	}
	means, err := c.means(ctx, pool, p)
	if err != nil {
		return nil, err
	}
	if means != "" {
		now[meantKey] = means
	}
	if last != nil && maps.Equal(last.settings, now) && (last.worker == worker || alike(all)) {
		return nil, nil
	}
	detail, err := json.Marshal(now)
	if err != nil {
		return nil, err
	}
	err = ask(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
		if err := operator.AwaitRemovals(ctx, tx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, c.sql(configureSQL), p.Name, worker, string(detail))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("note the configuration of process %q: %w", p.Name, err)
	}
	return last, nil
}

// sql puts the schema into a statement.
func (c Config) sql(text string) string {
	return strings.ReplaceAll(text, "{schema}", pgx.Identifier{c.schema()}.Sanitize())
}

func (c Config) schema() string {
	if c.Schema == "" {
		return "public"
	}
	return c.Schema
}

// announce notes the configuration of each process in the audit. It warns if another worker ran with a different one.
// The processes wait for its first attempt, so that even a short drain is noticed. They do not wait for a second one:
// they can run without a note, and report a fault of the database themselves. A right that is missing here may be one
// that they do not need. After that, announce waits for the end of the crew, because its return would end all
// processes. It does return, and ends them, if the server has no connections for them.
func (c *crew) announce() error {
	if err := c.awaitConnections(c.connectionsPatience); err != nil {
		c.refused = true
		close(c.announced)
		return c.keep(err)
	}
	c.refuseNewNames()
	c.serverRun, _ = c.config.serverRun(c.ctx, c.pool)
	left, err := c.announceAll(c.begins())
	if denied(err) {
		c.log.Warn(grantsFix, "err", err)
	}
	close(c.announced)
	backoff := retry.WithCappedDuration(maxAnnounceDelay, retry.NewExponential(firstAnnounceDelay))
	_ = retry.Do(c.ctx, backoff, func(context.Context) error {
		left, err = c.announceAll(left)
		return retry.RetryableError(err)
	})
	server := time.NewTicker(newServerInterval)
	defer server.Stop()
	for {
		select {
		case user := <-c.config.renewal.newUsers():
			c.announceAs(user)
		case <-server.C:
			c.announceAnew()
		case <-c.ctx.Done():
			return nil
		}
	}
}

// announceAs makes status know the workers by their new user. It drops a user that was replaced, because that one may
// no longer be able to log in.
func (c *crew) announceAs(user string) {
	backoff := retry.WithCappedDuration(maxAnnounceDelay, retry.NewExponential(firstAnnounceDelay))
	_ = retry.Do(c.ctx, backoff, func(context.Context) error {
		select {
		case user = <-c.config.renewal.newUsers():
		default:
		}
		for _, p := range c.begins() {
			if err := c.config.noteWatched(c.ctx, c.pool, p, c.store.Worker(), user); err != nil {
				return retry.RetryableError(err)
			}
		}
		return nil
	})
}

// announceAnew makes status know the workers on a server that has started anew: a promoted standby or a restored
// database may lack the earlier announcement.
func (c *crew) announceAnew() {
	run, err := c.config.serverRun(c.ctx, c.pool)
	if err != nil || run == c.serverRun {
		return
	}
	for _, p := range c.begins() {
		if c.config.noteWatched(c.ctx, c.pool, p, c.store.Worker(), "") != nil {
			return // until the next look
		}
	}
	c.serverRun = run
}

const (
	firstAnnounceDelay = 100 * time.Millisecond
	maxAnnounceDelay   = 10 * time.Second
	newServerInterval  = 5 * time.Second // between two checks whether the server has started anew
)

// announceAll returns the processes from the first one that failed, and the reason. The others would fail for the
// same reason.
func (c *crew) announceAll(processes []Process) ([]Process, error) {
	for i, p := range processes {
		last, err := c.config.noteConfigured(c.ctx, c.pool, p, c.store.Worker())
		if err == nil {
			err = c.config.noteWatched(c.ctx, c.pool, p, c.store.Worker(), "")
		}
		if err != nil {
			return processes[i:], err
		}
		if last == nil {
			continue
		}
		if difference := last.difference(p.settings(last.settings[saltKey])); difference != "" {
			c.log.Warn("the configuration has changed: "+difference+"; "+otherConfigurationFix,
				"process", p.Name, "worker", last.worker, "since", last.at)
		}
	}
	return nil, nil
}

// meantKey is the key under which the settings note which table source.table meant, if that has no schema: the name
// with the schema that the search_path gave it.
const meantKey = "source.table means"

// meant returns which table the name of a process's table meant when the process last ran, under this name or an
// earlier one. It returns "" if that is not known, or if another name was configured. If the cursor tables are
// missing, of an older version, or not readable, the process cannot run at all, and reports that itself.
func (c Config) meant(ctx context.Context, pool *pgxpool.Pool, p Process) (string, error) {
	store, err := cursor.NewStore(pool, cursor.Config{Schema: c.Schema})
	if err != nil {
		return "", err
	}
	last, found, err := operator.New(store).Last(ctx, p.Name, "configure")
	var pgErr *pgconn.PgError
	switch {
	case errors.As(err, &pgErr) && slices.Contains([]string{"42P01", "3F000", "42703", "42501"}, pgErr.Code):
		return "", nil
	case err != nil || !found:
		return "", err
	}
	var was settings
	if err := json.Unmarshal(last.Detail, &was); err != nil {
		return "", fmt.Errorf("read the last configuration of process %q: %w", p.Name, err)
	}
	if was["source.table"] != p.Source.Table {
		return "", nil
	}
	return was[meantKey], nil
}

// means returns which table the name of a process's table means now, so that it can be noted. While that is not
// certain, the earlier meaning stays noted.
func (c Config) means(ctx context.Context, pool *pgxpool.Pool, p Process) (string, error) {
	source, err := c.source(p, pool, nil)
	if err != nil {
		return "", err
	}
	if source.Qualified() {
		return "", nil
	}
	name, err := source.Name(ctx)
	if err != nil || name != "" {
		return name, err
	}
	return c.meant(ctx, pool, p)
}
