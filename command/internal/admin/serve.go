package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/daemon"
	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/desk"
)

// Pages makes the pages of a desk. nil: there are none, and the API is all.
type Pages func(d *desk.Desk) http.Handler

// Serve returns what a daemon serves beside metrics and health: the API, and pages.
func Serve(pages Pages) daemon.Serve { return serve(pages, time.Now) }

func serve(pages Pages, now func() time.Time) daemon.Serve {
	return func(ctx context.Context, i daemon.Inside) (http.Handler, func(), error) {
		d, err := desk.New(ctx, desk.Config{Config: i.Config, Logger: i.Logger, Stdout: i.Stdout})
		if err != nil {
			return nil, nil, err
		}
		var handler http.Handler = http.NotFoundHandler()
		if pages != nil {
			handler = pages(d)
		}
		gate, err := New(ctx, Config{Settings: i.Config.Admin, Loopback: i.Loopback(), Desk: d, Pages: handler, Logger: i.Logger, now: now})
		if err != nil {
			d.Close()
			return nil, nil, err
		}
		if !i.Loopback() {
			warnOfOthers(i)
		}
		return gate, d.Close, nil
	}
}

// warnOfOthers warns of what an address that others can reach means.
func warnOfOthers(i daemon.Inside) {
	if !i.Config.Admin.Logins() {
		i.Logger.Info("others can reach the address of --listen, so the console needs a login, and the file has none: see admin in the configuration", "address", i.Address.String())
		return
	}
	i.Logger.Warn("logins of the console go over the network in the clear, unless a proxy with TLS is in between",
		"address", i.Address.String(), "fix", "set --listen to an address of this machine only, behind a proxy with TLS")
}
