package daemon

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
)

const (
	readTimeout    = 5 * time.Second
	answerTimeout  = 15 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 16 << 10
	maxConns       = 512                   // the remaining file descriptors are for deliveries
	patience       = 20 * time.Millisecond // leaves room for 25,000 connections a second
)

// listen opens an address as host:port. Without a host, only this machine can reach it: you must ask for an address
// that others can reach.
func listen(ctx context.Context, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, usage("--listen %q is not an address: write host:port, or :port for this machine only", address)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, port))
	if err != nil {
		return nil, usage("--listen %s: %w; choose an address of this machine and a port that is free", address, err)
	}
	return listener, nil
}

// newServer serves exact routes, for reading only, and every other path by rest, which has a gate of its own. rest may be
// nil.
func newServer(log *slog.Logger, loopback bool, routes map[string]http.Handler, rest http.Handler) *http.Server {
	own := func(handler http.Handler) http.Handler {
		if loopback {
			return ownHosts(handler)
		}
		return handler
	}
	mux := http.NewServeMux()
	for path, handler := range routes {
		mux.Handle(path, own(readOnly(handler)))
	}
	if rest == nil {
		rest = own(http.NotFoundHandler())
	}
	mux.Handle("/", rest)
	return &http.Server{
		Handler:           plain(mux),
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      answerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState:         newRoom(maxConns, patience).watch,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// readOnly allows GET and HEAD alone.
func readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// plain keeps browsers and caches from interpreting or keeping an answer.
func plain(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// ownHosts refuses host names other than this machine's own. A web page may have pointed such a name at this machine,
// to read answers that only this machine should read (DNS rebinding).
func ownHosts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !ownHost(r.Host) {
			http.Error(w, "use an IP address or localhost in the request, or set --listen to an address that others may reach", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func ownHost(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host, _, _ = net.SplitHostPort(hostport + ":0") // without a port
	}
	_, err = netip.ParseAddr(host)
	return err == nil || strings.EqualFold(host, "localhost")
}

// probe answers 200 as long as there is no fault, and else 503 with the fault.
func probe(fault func() error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := fault(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
}

func isLoopback(address net.Addr) bool {
	tcp, ok := address.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
