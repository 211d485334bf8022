package daemon

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// WithPool runs f with connections to the database of the configuration, whose sessions have a suffix in their
// application_name. It is for commands that only look.
func (c Config) WithPool(ctx context.Context, suffix string, f func(context.Context, *pgxpool.Pool) error) error {
	pool, _, err := c.openAs(ctx, nil, func(application string) string { return application + " " + suffix })
	if err != nil {
		return err
	}
	defer pool.Close()
	return Reachable(f(ctx, pool))
}

// ProcessNamed returns a process of the file. Without a name it returns the only one. It returns a *UsageError if there
// is no such process.
func (c Config) ProcessNamed(name string) (Process, error) {
	if name == "" && len(c.Processes) == 1 {
		return c.Processes[0], nil
	}
	if name == "" {
		return Process{}, usage("the file has %d processes: name one of them", len(c.Processes))
	}
	for _, p := range c.Processes {
		if p.Name == name {
			return p, nil
		}
	}
	return Process{}, unknownProcess(name, c.Names())
}
