package prepared

// RunSQL tells one run of a server from another, for any role: since when its postmaster runs, and since when its statistics count.
// If a session dies, the postmaster stays and recovers as after a crash; that resets the statistics and not the time of the
// postmaster's start. PostgreSQL 14 keeps them in a file that is slow to read: there the start alone counts.
const RunSQL = `pg_catalog.concat(
		extract(epoch FROM pg_catalog.pg_postmaster_start_time()), '/',
		CASE WHEN pg_catalog.current_setting('server_version_num')::pg_catalog.int4 OPERATOR(pg_catalog.>=) 150000
			THEN extract(epoch FROM pg_catalog.pg_stat_get_bgwriter_stat_reset_time()) END)`
