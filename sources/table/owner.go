package table

// ownersSQL adds two columns to tableSQL. The first is whether this session has the rights of a superuser, or can
// take them back. The second is a role that is not a superuser and owns the table, a table below it, or the type of a
// column. Code that such an owner attaches (a cast, a domain's check, an index on an expression) runs with the rights
// of the role that reads.
const ownersSQL = `
	EXISTS (SELECT FROM pg_roles r WHERE r.rolsuper AND r.rolname IN (current_user, session_user)),
	coalesce((
		SELECT r.rolname::text
		FROM pg_roles r
		WHERE NOT r.rolsuper AND r.oid IN (
			SELECT m.relowner FROM tree JOIN pg_class m ON m.oid = tree.oid
			UNION ALL
			SELECT t.typowner FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid WHERE a.attrelid = c.oid AND a.attnum > 0)
		ORDER BY 1
		LIMIT 1), '')`

// owners warns if the owner of a table, or of a type in it, can make code run with all rights.
func (e *examination) owners(l *layout) {
	if e.cat.super && e.cat.owner != "" {
		e.warn("run the processes as a role of their own: `ordered-dispatcher grants -c FILE --role NAME` prints what it needs",
			"role %s is a superuser, and role %s owns %s or a type in it: what that role attaches to them, a cast or a domain, runs with all rights", e.cat.role, e.cat.owner, l.name())
	}
}
