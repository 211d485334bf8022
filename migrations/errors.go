package migrations

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrPooler means that the connection goes through a pooler, where a search_path and a lock would become another
// client's.
var ErrPooler = errors.New("a connection pooler is in between, and migrations need a session of their own: " +
	"connect to the server directly, or run what `ordered-dispatcher migrate print` prints")

// fixes are the SQLSTATEs that an operator can fix, and how.
var fixes = map[string]string{
	"42501": "let a role that may create objects migrate: GRANT CREATE ON SCHEMA (or ON DATABASE, if the schema is missing)",
	"42P07": "a table of that name exists, but these migrations did not make it: choose another schema, or move the table away",
	"42P06": "another session has just made the schema: run it again",
	lockNotAvailable: "another migration, or a worker, holds a lock that this one needs: pause its process (ordered-dispatcher pause), or end the session, then run it again. " +
		"Do not end a session whose COMMIT waits for a synchronous standby (its wait_event is SyncRep): then a failover would lose what it has committed",
	"25006": "the server is read-only: connect to the primary (target_session_attrs=read-write)",
	"2BP01": "something else was built on the tables: drop that first",
}

// lockNotAvailable is the SQLSTATE of a wait for a lock that took longer than lock_timeout.
const lockNotAvailable = "55P03"

// refusedSetting is the SQLSTATE with which a pooler answers a search_path at the start of a session.
const refusedSetting = "08P01"

const statusVerb = "migrate status"

func explain(verb string, err error) error {
	if err == nil {
		return nil
	}
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		if pgErr.Code == refusedSetting {
			return fmt.Errorf("%s: %w (%w)", verb, ErrPooler, pgErr)
		}
		if pgErr.Code == "42501" && verb == statusVerb {
			return fmt.Errorf("%s: %w; ask as the role that migrates, or GRANT SELECT ON the table; a worker needs neither, and `doctor` says what is missing", verb, err)
		}
		if fix, ok := fixes[pgErr.Code]; ok {
			return fmt.Errorf("%s: %w; %s", verb, err, fix)
		}
	}
	return fmt.Errorf("%s: %w", verb, err)
}
