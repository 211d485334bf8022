package main

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// cache has titles of products in memory.
type cache struct {
	pool *pgxpool.Pool

	mu     sync.Mutex
	titles map[string]string
}

// get returns the title of a product. It holds the lock while it asks the database: so a message of a later change comes
// after the title is in the cache.
func (c *cache) get(ctx context.Context, id string) (title string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if title, ok := c.titles[id]; ok {
		return title, nil
	}
	if err := c.pool.QueryRow(ctx, "SELECT title FROM public.product WHERE id = $1", id).Scan(&title); err != nil {
		return "", err
	}
	if c.titles == nil {
		c.titles = map[string]string{}
	}
	c.titles[id] = title
	return title, nil
}

// invalidate is the effect of the cache invalidator. A rollback does not undo it: then the title is read once more.
func (c *cache) invalidate(_ context.Context, _ pgx.Tx, p product) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.titles, p.ID)
	return nil
}

// stale counts the titles that are not those of the products.
func (c *cache) stale(titles map[string]string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, title := range c.titles {
		if titles[id] != title {
			n++
		}
	}
	return n
}
