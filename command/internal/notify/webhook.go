package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/signature"
)

const (
	// maxAnswer is how much of an answer is read, so that its connection can be used again.
	maxAnswer = 4 << 10
	// maxLater bounds the delay that an answer may ask for.
	maxLater = time.Hour
)

// caller sends requests to one address.
type caller struct {
	url    *url.URL
	client *http.Client
	tls    *tls.Config
}

// newCaller makes the caller of an address that checkURL has accepted.
func newCaller(address string, given *tls.Config) caller {
	u, _ := url.Parse(address)
	config := &tls.Config{}
	if given != nil {
		config = given.Clone()
	}
	if config.MinVersion == 0 {
		config.MinVersion = tls.VersionTLS12
	}
	transport := &http.Transport{
		Proxy: nil, TLSClientConfig: config, DisableCompression: true, DisableKeepAlives: true,
		MaxResponseHeaderBytes: 64 << 10,
	}
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return caller{u, &http.Client{Transport: transport, CheckRedirect: noRedirect}, config}
}

// String names scheme and host.
func (c caller) String() string { return c.url.Scheme + "://" + c.url.Host }

// post sends a request. Its errors show neither the path, which may be a secret, nor words of the receiver.
func (c caller) post(ctx context.Context, header http.Header, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url.String(), bytes.NewReader(body))
	if err != nil {
		return errors.New("the request cannot be made")
	}
	request.Header = header
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "ordered-dispatcher")
	request.GetBody = nil // the transport must not send it again by itself
	response, err := c.client.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) { // it shows the address
			err = wrapped.Err
		}
		return err
	}
	defer response.Body.Close()
	_, _ = io.CopyN(io.Discard, response.Body, maxAnswer)
	if response.StatusCode/100 == 2 {
		return nil
	}
	err = fmt.Errorf("it answered %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	if after, parseErr := strconv.Atoi(response.Header.Get("Retry-After")); parseErr == nil && after > 0 {
		return &LaterError{err, min(time.Duration(min(after, 1<<20))*time.Second, maxLater)}
	}
	return err
}

// reach connects, with TLS if the address has it, and sends nothing.
func (c caller) reach(ctx context.Context) error {
	port := c.url.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[c.url.Scheme]
	}
	address := net.JoinHostPort(c.url.Hostname(), port)
	var conn net.Conn
	var err error
	if c.url.Scheme == "https" {
		conn, err = (&tls.Dialer{Config: c.tls}).DialContext(ctx, "tcp", address)
	} else {
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return err
	}
	return conn.Close()
}

// pathOf returns the part of a URL after its host, where tokens are.
func pathOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || len(u.RequestURI()) < 2 {
		return ""
	}
	return u.RequestURI()[1:]
}

// webhook sends signed requests.
type webhook struct {
	caller
	keys    signature.Keys
	headers map[string]string
}

func newWebhook(c Webhook) webhook {
	keys, _ := signature.Parse(c.Secret) // it is valid
	return webhook{newCaller(c.URL, c.TLS), keys, c.Headers}
}

// String names scheme and host.
func (w webhook) String() string { return "webhook to " + w.caller.String() }

func (w webhook) send(ctx context.Context, m Message) error {
	body, err := m.JSON()
	if err != nil {
		return err
	}
	header := http.Header{}
	for name, value := range w.headers {
		header.Set(name, value)
	}
	header.Set("Webhook-Id", m.ID)
	header.Set("Webhook-Timestamp", strconv.FormatInt(time.Now().Unix(), 10))
	if len(w.keys) > 0 {
		header.Set("Webhook-Signature", w.keys.Standard(signature.Message{Header: header, Body: body}))
	}
	return w.post(ctx, header, body)
}
