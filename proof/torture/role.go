package main

import (
	"bytes"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// createRoles makes the roles of the slots, and grants each what the program prints for it and nothing else. Their
// settings are hostile from the start.
func (f *field) createRoles(ctx context.Context) error {
	made := map[string]bool{"": true}
	for _, s := range slots() {
		if made[s.role] {
			continue
		}
		made[s.role] = true
		if err := f.createRole(ctx, s.role); err != nil {
			return fmt.Errorf("create the role %s: %w", s.role, err)
		}
	}
	return f.database.do(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, settingsSQL(hostileToDaemons), pgx.QueryExecModeSimpleProtocol)
		return err
	})
}

func (f *field) createRole(ctx context.Context, role string) error {
	var refusal bytes.Buffer
	cmd := f.dir.Command(ctx, f.desk.program, "grants", "-c", f.dir.Path(f.desk.config()), "--role", role)
	cmd.Stderr = &refusal
	grants, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("ask for its grants: %w\n%s", err, refusal.Bytes())
	}
	return f.database.do(ctx, func(conn *pgx.Conn) error {
		name := pgx.Identifier{role}.Sanitize()
		_, err := conn.Exec(ctx, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s';\n%s", name, role, grants), pgx.QueryExecModeSimpleProtocol)
		return err
	})
}
