package receivers

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/signature"
)

const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

// post is a request of the daemon.
type post struct {
	header http.Header
	body   []byte
}

func (p post) epoch() int64 {
	epoch, _ := strconv.ParseInt(p.header.Get("ordered-epoch"), 10, 64)
	return epoch
}

// signed returns the request as its worker would send it now.
func (p post) signed(t *testing.T) post {
	t.Helper()
	return p.signedBy(t, secret, time.Now())
}

// signedBy returns the request as a sender with this secret and this clock would send it.
func (p post) signedBy(t *testing.T, secret string, now time.Time) post {
	t.Helper()
	keys, err := signature.Parse(secret)
	require.NoError(t, err)
	header := p.header.Clone()
	header.Set("webhook-timestamp", strconv.FormatInt(now.Unix(), 10))
	m := signature.Message{Header: header, Body: p.body}
	header.Set("webhook-signature", keys.Standard(m))
	header.Set("ordered-signature", keys.Ordered(m))
	return post{header, p.body}
}

// keyed returns the request with another dedup key.
func (p post) keyed(key string) post {
	return p.with("webhook-id", key).with("ordered-dedup-key", key).with("idempotency-key", key)
}

// with returns the request with another value of a header.
func (p post) with(name, value string) post {
	header := p.header.Clone()
	header.Set(name, value)
	return post{header, p.body}
}

func (p post) number(t *testing.T, name string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(p.header.Get(name), 10, 64)
	require.NoError(t, err)
	return n
}

// wire hands requests on to the receivers in turn, also those of a daemon that has been killed meanwhile.
type wire struct {
	receivers []string
	server    *httptest.Server

	mu     sync.Mutex
	posts  []post
	sent   int
	change func(post) post // of the daemon's requests, on their way; nil: none
}

func newWire(t *testing.T) *wire {
	w := &wire{}
	w.server = httptest.NewServer(w)
	t.Cleanup(w.server.Close)
	return w
}

func (w *wire) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the daemon was killed before it had sent the whole
	}
	p := post{req.Header.Clone(), body}
	w.mu.Lock()
	w.posts = append(w.posts, p)
	lost := len(w.posts)%5 == 0
	if w.change != nil {
		p = w.change(p)
	}
	w.mu.Unlock()
	answer, err := w.send(p)
	if err != nil || lost {
		panic(http.ErrAbortHandler)
	}
	for name, values := range answer.header {
		rw.Header()[name] = values
	}
	rw.WriteHeader(answer.status)
	_, _ = rw.Write(answer.body)
}

// distort has the wire change the daemon's requests from now on; nil ends that.
func (w *wire) distort(change func(post) post) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.change = change
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

func (w *wire) send(p post) (answer, error) {
	w.mu.Lock()
	receiver := w.receivers[w.sent%len(w.receivers)]
	w.sent++
	w.mu.Unlock()
	req, err := http.NewRequest(http.MethodPost, receiver, bytes.NewReader(p.body))
	if err != nil {
		return answer{}, err
	}
	req.Header = p.header.Clone()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, text}, err
}

func (w *wire) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.posts)
}

// last returns the newest request with an epoch below the given one.
func (w *wire) last(t *testing.T, below int64) post {
	return w.find(t, func(p post) bool { return p.epoch() < below })
}

// find returns the newest request that is meant.
func (w *wire) find(t *testing.T, meant func(post) bool) post {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.posts) - 1; i >= 0; i-- {
		if meant(w.posts[i]) {
			return w.posts[i]
		}
	}
	require.Fail(t, "no such request")
	return post{}
}
