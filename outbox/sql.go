package outbox

import "fmt"

// insertSQL reads the records from one parameter, a JSON array: every driver has text. The identity and the default of
// created_at are evaluated row by row, in this order. Each function, type and operator has its schema: the search_path
// is the caller's, and may have others of the same name.
const insertSQL = `/* outbox.add */
INSERT INTO %s (aggregate_type, aggregate_id, "key", type, payload, headers)
SELECT
	r OPERATOR(pg_catalog.->>) 'aggregate_type',
	r OPERATOR(pg_catalog.->>) 'aggregate_id',
	r OPERATOR(pg_catalog.->>) 'key',
	r OPERATOR(pg_catalog.->>) 'type',
	%s,
	(r OPERATOR(pg_catalog.->) 'headers')::pg_catalog.text::pg_catalog.jsonb
FROM pg_catalog.json_array_elements($1::pg_catalog.text::pg_catalog.json) WITH ORDINALITY AS list (r, n)
ORDER BY n`

func insertInto(c Config) string {
	payload := "(r OPERATOR(pg_catalog.->) 'payload')::pg_catalog.text::pg_catalog.jsonb"
	if c.Raw {
		payload = "pg_catalog.decode(r OPERATOR(pg_catalog.->>) 'raw', 'base64')"
	}
	return fmt.Sprintf(insertSQL, c.Table.Sanitize(), payload)
}

// tableSQL makes the table. created_at orders the records. Rows with one transaction_id were written together.
const tableSQL = `CREATE TABLE IF NOT EXISTS %s (
	id             bigint GENERATED ALWAYS AS IDENTITY,
	created_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
	aggregate_type text,
	aggregate_id   text,
	key            text,
	type           text NOT NULL,
	payload        %s NOT NULL,
	headers        jsonb,
	transaction_id xid8 NOT NULL DEFAULT pg_current_xact_id(),
	PRIMARY KEY (created_at, id)
)%s;
`

// SQL returns the statement that makes the table, if it is missing. It makes no partition.
func (o *Outbox) SQL() string {
	by := ""
	if o.config.Partitioned {
		by = " PARTITION BY RANGE (created_at)"
	}
	return fmt.Sprintf(tableSQL, o.config.Table.Sanitize(), o.payloadType(), by)
}

func (o *Outbox) payloadType() string {
	if o.config.Raw {
		return "bytea"
	}
	return "jsonb"
}
