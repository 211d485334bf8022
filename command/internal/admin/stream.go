package admin

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/command/internal/admin/visitor"
)

const (
	eventTimeout = 10 * time.Second // in which a client has to take one event
	heartbeat    = 15 * time.Second // after which a quiet stream sends something, so that proxies keep it
)

// isStream reports whether an answer goes on for as long as somebody looks. Only a GET may have it: what is behind the
// gate would answer a HEAD in the same way.
func isStream(r *http.Request) bool {
	spelled := r.URL.EscapedPath() // the name of a process may end in a slash and "live", which it has escaped
	name, ofProcess := strings.CutPrefix(spelled, "/processes/")
	return spelled == "/api/v1/events" || spelled == "/live" || ofProcess && strings.HasSuffix(name, "/live")
}

// streamed serves a stream, unless too many are open. Its context ends with the visitor's right to see.
func (g *gate) streamed(w http.ResponseWriter, r *http.Request, serve func(http.ResponseWriter, *http.Request)) {
	places := []chan struct{}{g.streams}
	if !visitor.Of(r.Context()).Operate {
		places = []chan struct{}{g.watching, g.streams}
	}
	for _, of := range places {
		select {
		case of <- struct{}{}:
			defer func() { <-of }()
		default:
			w.Header().Set("Retry-After", "10")
			g.refuse(w, r, http.StatusServiceUnavailable, kindBusy, "too many pages are open: close some of them")
			return
		}
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(g.ctx, cancel)()
	if ends := visitor.Of(ctx).Ends; ends != nil {
		go func() {
			select {
			case <-ends:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // what cannot do this has no deadline
	serve(w, r.WithContext(ctx))
}

// stream is an answer of server-sent events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func begin(w http.ResponseWriter) (stream, error) {
	s := stream{w, http.NewResponseController(w)}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy in between must not wait for more
	return s, s.write("retry: 2000\n\n")
}

// send writes one event. data has no line break: it is JSON.
func (s stream) send(event string, data []byte) error {
	return s.write(fmt.Sprintf("event: %s\ndata: %s\n\n", event, data))
}

func (s stream) write(text string) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(eventTimeout)); err != nil {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}
