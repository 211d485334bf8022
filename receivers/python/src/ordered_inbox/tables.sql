CREATE TABLE IF NOT EXISTS {schema}.inbox_process (
	receiver text   NOT NULL,
	process  text   NOT NULL,
	stream   text   NOT NULL,
	origin   text   NOT NULL,
	epoch    bigint NOT NULL,
	sequence bigint NOT NULL,
	PRIMARY KEY (receiver, process, stream)
) WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS {schema}.inbox (
	receiver    text        NOT NULL,
	process     text        NOT NULL,
	dedup_key   text        NOT NULL,
	received_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
	PRIMARY KEY (receiver, process, dedup_key)
);

CREATE INDEX IF NOT EXISTS inbox_received_at ON {schema}.inbox (receiver, received_at);
