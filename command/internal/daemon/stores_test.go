package daemon

import (
	"context"
	"errors"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ordered-dispatcher/ordered-dispatcher/claim"
	rules "github.com/ordered-dispatcher/ordered-dispatcher/retention"
	"github.com/ordered-dispatcher/ordered-dispatcher/stores"
)

// opener is a kind of store that counts, and whose next Open may fail or wait.
type opener struct {
	dir            string
	opened, closed atomic.Int32
	fails          atomic.Bool
	wait           chan struct{} // nil: it does not wait
}

func (o *opener) spec() stores.Spec {
	return stores.Spec{
		Scheme: "mem", Example: "mem://bucket",
		Check: func(u *url.URL) error {
			if u.Host == "" {
				return errors.New("it names no bucket")
			}
			return nil
		},
		Open: func(ctx context.Context, _ *url.URL) (stores.Opened, error) {
			o.opened.Add(1)
			if o.wait != nil {
				<-o.wait
			}
			if o.fails.Load() {
				return stores.Opened{}, errors.New("no credentials")
			}
			return stores.Opened{
				Objects: claim.Dir(o.dir), Files: rules.Directory(o.dir), Reach: func(context.Context) error { return nil },
				Close: func() error { o.closed.Add(1); return nil },
			}, nil
		},
	}
}

// madeClaims is an empty store of claim checks.
func madeClaims(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, claim.Dir(dir).Create())
	return dir
}

func TestStores_AreOpenedOnceWhenTheyAreUsedAndClosed(t *testing.T) {
	t.Parallel()
	o := &opener{dir: madeClaims(t)}
	config := Config{stores: newStoreSet([]stores.Spec{o.spec()})}
	store := Process{Claims: "mem://b", stores: config.stores}.claimStore()
	require.Zero(t, o.opened.Load())

	r, err := claim.Put(t.Context(), store, []byte("payload"))
	require.NoError(t, err)
	whole, err := r.Resolve(t.Context(), store, 100)
	require.NoError(t, err)
	require.Equal(t, "payload", string(whole))
	var names []string
	require.NoError(t, store.List(t.Context(), func(o claim.Object) error { names = append(names, o.Name); return nil }))
	require.Equal(t, []string{r.Object}, names)
	require.NoError(t, store.Delete(t.Context(), r.Object))
	shelf, err := config.shelf(t.Context(), TableRule{Rule: rules.Rule{Mode: rules.ModeFiles, Directory: "mem://b"}})
	require.NoError(t, err)
	require.Equal(t, rules.Directory(o.dir), shelf)
	require.EqualValues(t, 1, o.opened.Load(), "all of them share it")

	config.stores.close()
	config.stores.close()
	require.EqualValues(t, 1, o.closed.Load())
	_, err = r.Resolve(t.Context(), store, 100)
	require.ErrorIs(t, err, claim.ErrMissing)
	require.EqualValues(t, 2, o.opened.Load())
}

func TestStores_AFailureToOpenIsAnOutageAndNotKept(t *testing.T) {
	t.Parallel()
	o := &opener{dir: madeClaims(t)}
	set := newStoreSet([]stores.Spec{o.spec()})
	store := Process{Claims: "mem://b", stores: set}.claimStore()
	o.fails.Store(true)
	_, err := claim.Put(t.Context(), store, nil)
	require.ErrorContains(t, err, "open the store: no credentials")
	require.False(t, claim.IsAboutObject(err))
	set.close()
	o.fails.Store(false)
	_, err = claim.Put(t.Context(), store, nil)
	require.NoError(t, err)
}

// A client may look for its credentials for longer than a record has. What it finds is there for the next attempt.
func TestStores_ACallDoesNotWaitLongerThanItMay(t *testing.T) {
	t.Parallel()
	o := &opener{dir: madeClaims(t), wait: make(chan struct{})}
	set := newStoreSet([]stores.Spec{o.spec()})
	store := Process{Claims: "mem://b", stores: set}.claimStore()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := claim.Put(ended, store, nil)
	require.ErrorContains(t, err, "open the store: its client still looks for its credentials")
	close(o.wait)
	_, err = claim.Put(t.Context(), store, nil)
	require.NoError(t, err)
	require.EqualValues(t, 1, o.opened.Load())
}

func TestStores_CheckNamesTheKinds(t *testing.T) {
	t.Parallel()
	known := newStoreSet([]stores.Spec{(&opener{}).spec()})
	for place, want := range map[string]string{
		"/srv/claims": "",
		"mem://b":     "",
		"mem://":      "it names no bucket",
		"s3://b":      "this program knows no store whose URLs begin with s3://: write a path or mem://bucket",
		"mem://u:p@b": "it has a login: leave it out, and give credentials in the environment, as the client of the store takes them",
		"mem://b\x7f": "it begins as a URL does, and is not one",
	} {
		if want == "" {
			require.NoError(t, known.check(place))
			continue
		}
		require.EqualError(t, known.check(place), want)
	}
	var none *storeSet
	require.EqualError(t, none.check("s3://b"), "this program knows no store whose URLs begin with s3://: write a path")
	_, err := none.at(t.Context(), "s3://b")
	require.Error(t, err)
}
