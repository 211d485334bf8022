package prepared

// RunSQL identifies the run of a server, for any role: by the start of its postmaster and the last reset of its
// statistics. If a session is killed, the server recovers as after a crash, and its postmaster stays. The recovery
// resets the statistics, so the run is another one. PostgreSQL 14 keeps its statistics in a file that is slow to
// read: there only the start counts.
const RunSQL = `pg_catalog.concat(
		extract(epoch FROM pg_catalog.pg_postmaster_start_time()), '/',
		CASE WHEN pg_catalog.current_setting('server_version_num')::pg_catalog.int4 OPERATOR(pg_catalog.>=) 150000
			THEN extract(epoch FROM pg_catalog.pg_stat_get_bgwriter_stat_reset_time()) END)`
