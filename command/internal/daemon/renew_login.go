package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// login is the login of the connections of a pool. Each new connection takes it from the files that references in the
// connection string name.
type login struct {
	renewal *renewal
	log     *slog.Logger

	mu             sync.Mutex
	files          map[string]string // with their content when the login was read
	user, password string
	noted          string // the last user that has logged in
	warned         bool   // that the address has changed
}

// renewLogin makes each new connection of a pool log in with the content that the files have by then.
func (c Config) renewLogin(config *pgxpool.Config, log *slog.Logger) {
	if c.renewal == nil || len(c.databaseFiles) == 0 {
		return
	}
	l := &login{renewal: c.renewal, log: quietly(log), files: c.databaseFiles, user: config.ConnConfig.User, password: config.ConnConfig.Password, noted: config.ConnConfig.User}
	config.BeforeConnect = func(_ context.Context, conn *pgx.ConnConfig) error { return l.renew(conn) }
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		l.note(conn.Config().User)
		return nil
	}
}

// renew gives a new connection its login. If a file cannot be read, it makes no connection: the server could refuse
// the former login, and the message would not lead to the cause.
func (l *login) renew(conn *pgx.ConnConfig) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	texts, err := l.renewal.readAgain(l.files)
	if err == nil && !maps.Equal(texts, l.files) {
		err = l.follow(texts, conn)
	}
	if err != nil {
		return fmt.Errorf("read the login for the database anew: %w", err)
	}
	conn.User, conn.Password = l.user, l.password
	return nil
}

// note makes status know a user that has logged in. A user that cannot log in is never announced, because the search
// for its connection would close the connections that work.
func (l *login) note(user string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if user == l.user && user != l.noted {
		l.noted = user
		l.renewal.noteUser(user)
	}
}

// follow adopts another login. A login for another server needs a restart.
func (l *login) follow(texts map[string]string, conn *pgx.ConnConfig) error {
	database, err := l.renewal.readDatabase(texts)
	if err != nil {
		return err
	}
	now, err := poolConfig(database, 0)
	if err != nil {
		return err
	}
	if leadsTo(now.ConnConfig) != leadsTo(conn) {
		if !l.warned {
			l.log.Warn("a file that database refers to has changed the address, which needs a restart: the former address and login stay in use")
		}
		l.warned = true
		return nil
	}
	l.renewal.learnLogin(now.ConnConfig.Password, append(replaced(l.files, texts), l.password)...)
	l.files, l.user, l.password, l.warned = texts, now.ConnConfig.User, now.ConnConfig.Password, false
	l.log.Info("a file of the database's login has changed: new connections use the new login")
	return nil
}

// leadsTo returns the place to which a connection leads.
func leadsTo(c *pgx.ConnConfig) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d", c.Host, c.Port)
	for _, other := range c.Fallbacks {
		fmt.Fprintf(&b, ",%s:%d", other.Host, other.Port)
	}
	return b.String() + "/" + c.Database
}
