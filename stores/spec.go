package stores

import (
	"context"
	"net/url"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
	"github.com/ordered-dispatcher/ordered-dispatcher/retention"
)

// Spec describes one kind of object store to a daemon.
type Spec struct {
	// Scheme is how its URLs begin, without the "://".
	Scheme string
	// Example is a URL, for messages.
	Example string
	// Check returns what is wrong with a URL, as far as that can be seen without the network.
	Check func(u *url.URL) error
	// Open opens the store. ctx bounds Open alone. What was opened may be used after ctx has ended.
	Open func(ctx context.Context, u *url.URL) (Opened, error)
}

// Opened is an object store that can be used. All its fields are set.
type Opened struct {
	// Objects keeps the payloads of claim checks.
	Objects claim.Store
	// Files keeps the files of archives.
	Files retention.Shelf
	// Reach returns nil if the store answers, and this program may list it.
	Reach func(ctx context.Context) error
	// Close ends its connections. It is called once, when no call is under way.
	Close func() error
}
