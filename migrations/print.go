package migrations

import (
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Print writes the way up of all migrations as one transaction of plain SQL, for people who apply it with a tool of
// their own. That tool must record what is applied: the version table of this package is not written.
func Print(w io.Writer, schema string) error {
	config := Config{Schema: schema}.withDefaults()
	if err := config.validate(); err != nil {
		return explain("migrate print", err)
	}
	known, err := list()
	if err != nil {
		return explain("migrate print", err)
	}
	name := pgx.Identifier{config.Schema}.Sanitize()
	var b strings.Builder
	b.WriteString("BEGIN;\n")
	if config.Schema != defaultSchema {
		fmt.Fprintf(&b, "CREATE SCHEMA IF NOT EXISTS %s;\n", name)
	}
	fmt.Fprintf(&b, "SET LOCAL search_path = %s;\n", searchPath(config.Schema))
	for _, m := range known {
		text, err := files.ReadFile(m.Name)
		if err != nil {
			return explain("migrate print", err)
		}
		fmt.Fprintf(&b, "\n-- %s\n%s", m.Name, plain(string(text)))
	}
	b.WriteString("\nCOMMIT;\n")
	_, err = io.WriteString(w, b.String())
	return explain("migrate print", err)
}

// plain returns the way up without annotations.
func plain(text string) string { return strings.TrimSpace(ways(text)["Up"]) + "\n" }

// ways returns the SQL of each way, "Up" and "Down", without the annotations. These are goose's, so that its users
// can run the files. Text before the first annotation belongs to the way up.
func ways(text string) map[string]string {
	all, way := map[string]string{}, "Up"
	for line := range strings.Lines(text) {
		annotation, is := strings.CutPrefix(strings.TrimSpace(line), "-- +goose ")
		switch {
		case is && (annotation == "Up" || annotation == "Down"):
			way = annotation
		case !is:
			all[way] += line
		}
	}
	return all
}
