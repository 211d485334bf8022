package buckets

import (
	"context"
	"regexp"
	"strings"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
)

// queries are the parameters of URLs: a client quotes the URL of a request that failed, and Azure's has a token there.
var queries = regexp.MustCompile(`(://[^\s"'?]*)\?[^\s"']*`)

// wrapped is what gocloud.dev/blob puts before an error of a client. The caller knows the name already, and a line of
// status has room for the rest.
var wrapped = regexp.MustCompile(`^blob \(key "[^"]*"\) \(code=\w+\): `)

// worded returns an error of a client on one line, without the parameters of URLs. claim.IsAboutObject and the context's
// errors are recognized as before.
func worded(err error) error {
	if err == nil {
		return nil
	}
	text := queries.ReplaceAllString(wrapped.ReplaceAllString(err.Error(), ""), "$1")
	return &wording{strings.Join(strings.Fields(strings.ReplaceAll(text, rule, "")), " "), err}
}

// rule is a line in errors of Azure.
const rule = "--------------------------------------------------------------------------------"

type wording struct {
	text  string
	cause error
}

func (w *wording) Error() string { return w.text }

func (w *wording) Unwrap() error { return w.cause }

// objects is a store whose errors are worded.
type objects struct{ claim.Store }

func (o objects) Put(ctx context.Context, name string, content []byte) error {
	return worded(o.Store.Put(ctx, name, content))
}

func (o objects) Get(ctx context.Context, name string, limit int) ([]byte, error) {
	content, err := o.Store.Get(ctx, name, limit)
	return content, worded(err)
}

func (o objects) List(ctx context.Context, each func(claim.Object) error) error {
	return worded(o.Store.List(ctx, each))
}

func (o objects) Delete(ctx context.Context, name string) error {
	return worded(o.Store.Delete(ctx, name))
}
