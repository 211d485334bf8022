package tables

import "fmt"

// These expressions identify the server and the database. The timeline comes from the name of the current WAL
// file, because the control file still has the old one after a promotion.
const (
	SystemSQL   = `(SELECT system_identifier FROM pg_catalog.pg_control_system())`
	TimelineSQL = `('x' OPERATOR(pg_catalog.||) pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8))::bit(32)::int`
	DatabaseSQL = `(SELECT oid FROM pg_catalog.pg_database WHERE datname OPERATOR(pg_catalog.=) pg_catalog.current_database())`
	PlaceOfSQL  = SystemSQL + `, ` + TimelineSQL + `, ` + DatabaseSQL
)

// HorizonHoldsSQL reports that the horizon of a row counts transactions of this database. It does not if the
// row comes from another database, or if the table is younger than the horizon: it was loaded from a dump. Of
// all catalog rows of a table, only those of its system columns (ctid is -1) never change after the table is
// made.
const HorizonHoldsSQL = `coalesce(system_identifier = ` + SystemSQL + ` AND database_oid = ` + DatabaseSQL + ` AND horizon <= pg_snapshot_xmax(pg_current_snapshot()) AND horizon::text::bigint > (
			SELECT now.xid - mod(now.xid - made.xmin::text::bigint, 4294967296)
			FROM pg_attribute made, (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS xid) now
			WHERE made.attrelid = cursor.tableoid AND made.attnum = -1
		), false)`

// LostEpochs is by how much the epoch moves at least where a history begins. A second does not see so many
// changes of worker and decisions of operators.
const LostEpochs = 1_000_000

// RestoredClasses are the classes of a failure for which cursor.Failure.Restored is true.
const RestoredClasses = `'restored', 'old_primary'`

// MayBeLaterSQL reports that a cursor of the same name may have been lost: with the commits that a promoted
// standby had not received, or because it is younger than the backup that was restored. It left nothing behind,
// but the server or other cursors show that something of the kind has happened.
var MayBeLaterSQL = TimelineSQL + ` OPERATOR(pg_catalog.<>) 1 OR EXISTS (
		SELECT 1
		FROM {schema}.cursor
		WHERE epoch >= ` + fmt.Sprint(LostEpochs) + ` OR failed_class IN (` + RestoredClasses + `) OR system_identifier <> ` + SystemSQL + ` OR database_oid <> ` + DatabaseSQL + `
	)`

// BornSQL is the epoch, the sequence and the histories of a new cursor. The arguments are those it gets if an
// earlier cursor of its name may have been lost. With anew it begins a history in any case.
func BornSQL(epoch, sequence, histories, anew string) string {
	return fmt.Sprintf(`CASE WHEN later.maybe THEN %s::bigint ELSE 0 END,
		CASE WHEN later.maybe THEN %s::bigint ELSE 0 END,
		CASE WHEN later.maybe OR %s THEN %s::jsonb ELSE '[]' END
	FROM (SELECT `+MayBeLaterSQL+` AS maybe) later`, epoch, sequence, anew+"::boolean", histories)
}
