package daemon

// Watching is the application_name of a worker's sessions.
func (c Config) Watching(application string) string { return c.watching(application) }
