package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/ordered-dispatcher/ordered-dispatcher/internal/visible"
	rules "github.com/ordered-dispatcher/ordered-dispatcher/retention"
	"github.com/ordered-dispatcher/ordered-dispatcher/stores"
)

// storePatience is how long a check waits for an object store.
const storePatience = 10 * time.Second

// claims looks for the store of claim checks.
func (d *doctor) claims(ctx context.Context, p Process) {
	if p.Claims == "" {
		return
	}
	err := d.reach(ctx, p.Claims, func(ctx context.Context, opened stores.Opened) error { return opened.Reach(ctx) })
	if err != nil {
		d.find(p.Name, Warn, storeFix(p.Claims, "read and list it"), "the store of claim checks, %s, cannot be opened, so records that have one wait: %v", visible.Line(p.Claims), err)
	}
}

// reach opens a store and tries it.
func (d *doctor) reach(ctx context.Context, place string, try func(context.Context, stores.Opened) error) error {
	ctx, cancel := context.WithTimeout(ctx, min(d.patience, storePatience))
	defer cancel()
	opened, err := d.config.stores.at(ctx, place)
	if err != nil {
		return err
	}
	return try(ctx, opened)
}

// storeFix is the next step for a store that cannot be used.
func storeFix(place, needs string) string {
	if !isURL(place) {
		return "make or mount the directory, and let the user of this program " + needs
	}
	return "make the bucket, correct the URL, or let the credentials in the environment of this program " + needs
}

// archives writes a file where each rule of mode files does, and removes it.
func (d *doctor) archives(ctx context.Context) {
	for _, r := range d.config.Rules {
		if r.Mode != rules.ModeFiles {
			continue
		}
		err := d.reach(ctx, r.Directory, func(ctx context.Context, opened stores.Opened) error { return writable(ctx, opened.Files) })
		if err != nil {
			d.find("", Warn, storeFix(r.Directory, "write, list and remove files there"),
				"retention of %s cannot write to %s, so its rows stay: %v", visible.Line(r.Table), visible.Line(r.Directory), err)
		}
	}
}

// trial is the name of the file that archives writes. Each doctor takes the same, so none is left behind for good.
const trial = "ordered-dispatcher-doctor"

func writable(ctx context.Context, shelf rules.Shelf) error {
	if err := shelf.Put(ctx, trial, []byte("written by ordered-dispatcher doctor, which removes it at once\n")); err != nil {
		return fmt.Errorf("write a file: %w", err)
	}
	if _, err := shelf.List(ctx, trial); err != nil {
		return fmt.Errorf("list files: %w", err)
	}
	if err := shelf.Remove(ctx, trial); err != nil {
		return fmt.Errorf("remove a file: %w", err)
	}
	return nil
}
