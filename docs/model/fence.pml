/*
 * The fence of one source: what a read may return while transactions are open.
 *
 * Nouns, and where they are in the code
 *
 *   row         (at, id): a stamp and an id. Any transaction may insert any id
 *   Writer      a session that inserts: locks the table, stamps rows, and commits at once or
 *               after PREPARE TRANSACTION. One that aborts is one that has inserted nothing
 *   Reader      Source.Read, one flush after another (layout.statements), and the cursor
 *               behind what it returned
 *   mark        statement 1 (layout.markSQL)
 *   seen        statement 2 (layout.writersSQL): who holds the table's lock
 *   rows        statement 3 (layout.readSQL)
 *   bounds      of the writers in the last sample (fence.next in fence.go)
 *   now         the server's clock. It goes on from one sample to the next, and from one stamp
 *               to the next it may
 *
 * With ORDER_ID the stamp is nextval() and the mark is the sequence's last value.
 *
 * Abstractions. A statement's snapshot is a moment. What a read returns is delivered: that
 * is lease.pml. There is no slack: the fence has to do without. Stamps are made after the
 * lock (clock_timestamp(), nextval()); those of now() are start.pml.
 */

#define WRITERS 2
#ifndef ROWS            /* 1 and 3 of the first writer, 2 of the second */
#define ROWS 2
#endif
#ifndef LIMIT           /* rows of one read: Config.Batch */
#define LIMIT 2
#endif
#ifndef LAST            /* where the clock, or the sequence, ends */
#define LAST 4
#endif
#ifndef TRANSACTIONS    /* of one writer */
#define TRANSACTIONS 1
#endif
#ifndef PREPARES        /* PREPARE TRANSACTION */
#define PREPARES 0
#endif
#ifndef FORGETS         /* restarts of the reader: it keeps the position and no bounds */
#define FORGETS 0
#endif

/*
 * Protections. Each has a switch that takes it away. STAMP_BEFORE_LOCK, LOCK_DROPPED_FIRST
 * and CLOCK_STEPS_BACK take away what the fence relies on.
 */

#ifdef ORDER_ID                 /* layout.below: no id is made twice, but a stamp may be as old as the mark */
#define at_fence true
#else
#ifdef FENCE_INCLUSIVE
#define at_fence true
#else
#define at_fence false
#endif
#endif
#ifdef FENCE_IGNORED            /* reading.add: rows at or past the fence are left */
#define below(r) true
#else
#define below(r) (at[r] < fence || at[r] == fence && at_fence)
#endif

#ifdef TIES_SKIPPED             /* layout.readSQL: (created_at, id) > ($1, $2) */
#define wanted(r) (at[r] > readAt && !passed(r))
#else
#define wanted(r) (!passed(r))
#endif

#ifdef FIRST_SIGHT_TRUSTED      /* fence.next: a writer of the first sample has no bound */
#define no_bound mark
#else
#define no_bound 0
#endif
#ifdef BOUND_BY_OWN_MARK        /* fence.next: a new writer is bounded by the mark before it */
#define new_bound mark
#else
#define new_bound floor
#endif
#ifdef BOUND_NOT_KEPT           /* fence.next: it keeps its bound while it is seen without a break */
#define kept_bound(b) new_bound
#else
#define kept_bound(b) (b)
#endif
#ifdef PREPARED_AS_NEW          /* fence.next: one that was prepared may be any of those that were there */
#define prepared_bound new_bound
#else
#define prepared_bound lowest
#endif

/* Claims. None of these is ever set. */

#define claim(name, holds) assert(name || (holds))
bit I1_nothing_commits_behind_the_cursor;
bit I1_nothing_visible_is_passed_over;
bit I5_nothing_is_read_twice;

/* The server. */

byte now = 1;                   /* with ORDER_ID: the sequence's last value, plus 1 */
byte at[ROWS + 1];              /* 0: no such row */
bit visible[ROWS + 1];
byte name[WRITERS + 1];         /* of a session's transaction: none has another's */
bit holds[WRITERS + 1];         /* it holds the table's lock */
bit prepared[WRITERS + 1];      /* the transaction it prepared does, under a name of its own */
byte finished, prepares, steps;

/* The reader. */

byte lastAt, lastId;            /* the cursor's position */
bit delivered[ROWS + 1];
byte forgets;
bit known;                      /* there was a sample */
byte lastMark;
byte W[WRITERS + 1], bound[WRITERS + 1];        /* in the last sample, by session; 0: none */
bit P[WRITERS + 1];
byte boundP[WRITERS + 1];

#define passed(r) (at[r] < lastAt || at[r] == lastAt && r <= lastId)
#define lost(r) (visible[r] && !delivered[r] && passed(r))
#define lower(a, b) ((a) < (b) -> (a) : (b))

#ifdef ORDER_ID
#define stamp(r) at[r] = now; now++
#else
#ifdef STAMP_BEFORE_LOCK        /* what PostgreSQL does: a default is evaluated when the table is locked */
#define stamp(r) at[r] = early
#else
#define stamp(r) at[r] = now
#endif
#endif

#define mine(r) ((r) % WRITERS == w % WRITERS)
#ifdef CLOCK_STEPS_BACK
#define or_steps_back(r) \
	:: atomic { may_insert(r) && steps == 0 && now > 2 -> steps++; now = now - 2; stamp(r); goto inserting }
#else
#define or_steps_back(r)
#endif

#define may_insert(r) (mine(r) && at[r] == 0 && !prepared[w])
#ifdef ORDER_ID
#define insert(r) atomic { may_insert(r) && now < LAST -> stamp(r); goto inserting }
#else
#define insert(r) \
	   atomic { may_insert(r) && now < LAST -> stamp(r); goto inserting } \
	:: atomic { may_insert(r) && now + 1 < LAST -> now++; stamp(r); goto inserting } \
	   or_steps_back(r)
#endif

inline commit() {
	for (r : 1 .. ROWS) {
		if
		:: at[r] != 0 && mine(r) && !visible[r] -> visible[r] = 1; claim(I1_nothing_commits_behind_the_cursor, !lost(r))
		:: else
		fi
	}
	r = 0
}

proctype Writer(byte w)
{
	byte r, early;
begin:
	if
#ifdef STAMP_BEFORE_LOCK
	:: atomic { name[w] < TRANSACTIONS -> early = now }
	   atomic { name[w]++; holds[w] = 1 }
#else
	:: atomic { name[w] < TRANSACTIONS -> name[w]++; holds[w] = 1 }
#endif
	:: atomic { finished++; goto end }
	fi;
inserting:
	if
	:: insert(1)
	:: insert(2)
#if ROWS > 2
	:: insert(3)
#endif
	:: atomic { !prepared[w] && prepares < PREPARES -> prepares++; holds[w] = 0; prepared[w] = 1; goto inserting }
#ifdef LOCK_DROPPED_FIRST       /* what PostgreSQL does: a commit is visible before its locks are dropped */
	:: atomic { holds[w] = 0; prepared[w] = 0; goto dropped }
#endif
	:: d_step { commit() }
	fi;
dropped:
	atomic {
#ifdef LOCK_DROPPED_FIRST
		commit();
#endif
		holds[w] = 0; prepared[w] = 0; early = 0; goto begin }
end:
	skip
}

inline take_mark() {
#ifdef ORDER_ID
	mark = now - 1
#else
	now = lower(now + 1, LAST);
	mark = now
#endif
}

inline take_writers() {
	for (w : 1 .. WRITERS) {
		seen[w] = (holds[w] -> name[w] : 0);
		seenP[w] = prepared[w]
	}
	w = 0
}

inline take_rows() {
	for (r : 1 .. ROWS) { rows[r] = visible[r] }
	r = 0
}

inline next() { /* fence.next */
	floor = lastMark;
	lowest = floor;
	for (w : 1 .. WRITERS) {
		if :: W[w] != 0 -> lowest = lower(lowest, bound[w]) :: else fi;
		if :: P[w] -> lowest = lower(lowest, boundP[w]) :: else fi
	}
	fence = mark;
	for (w : 1 .. WRITERS) {
		if
		:: seen[w] != 0 ->
			bound[w] = (!known -> no_bound : (seen[w] == W[w] -> kept_bound(bound[w]) : new_bound));
			fence = lower(fence, bound[w])
		:: else -> bound[w] = 0
		fi;
		if
		:: seenP[w] ->
			boundP[w] = (!known -> no_bound : (P[w] -> kept_bound(boundP[w]) : prepared_bound));
			fence = lower(fence, boundP[w])
		:: else -> boundP[w] = 0
		fi;
		W[w] = seen[w]; seen[w] = 0;
		P[w] = seenP[w]; seenP[w] = 0
	}
	w = 0;
#ifdef WAIT_FOR_STRANGERS       /* writersSQL: only who holds the lock of this table */
	fence = 0;
#endif
	known = 1; lastMark = mark; floor = 0; lowest = 0
}

#ifdef ORDER_ID                 /* layout.check: the clock must be behind no record that was delivered */
#define in_order true
#else
#define in_order (mark > readAt || readAt == 0)
#endif

inline deliver() { /* reading.add, layout.check, and the cursor's advance */
	readAt = lastAt;
	for (i : 1 .. LIMIT) {
		for (r : 1 .. ROWS) {
			if
			:: rows[r] && wanted(r) && (first == 0 || at[r] < at[first]) -> first = r
			:: else
			fi
		}
		if
		:: first != 0 && below(first) && in_order ->
			claim(I5_nothing_is_read_twice, !delivered[first]);
			delivered[first] = 1; lastAt = at[first]; lastId = first
		:: else
		fi;
		first = 0
	}
	for (r : 1 .. ROWS) {
		claim(I1_nothing_visible_is_passed_over, !lost(r));
		rows[r] = 0
	}
	r = 0; i = 0; mark = 0; fence = 0; readAt = 0
}

active proctype Reader()
{
	byte mark, fence, floor, lowest, readAt, first, i, r, w;
	byte seen[WRITERS + 1];
	bit seenP[WRITERS + 1], rows[ROWS + 1];
end:
	do
	:: 
#ifdef MARK_AFTER_WRITERS
		d_step { take_writers() }
		d_step { take_mark() }
#else
		d_step { take_mark() }
#ifdef ROWS_BEFORE_WRITERS
		d_step { take_rows() }
#endif
		d_step { take_writers() }
#endif
		d_step {
#ifndef ROWS_BEFORE_WRITERS
			take_rows();
#endif
			next(); deliver() }
	:: atomic { forgets < FORGETS -> forgets++; known = 0; lastMark = 0;
		for (w : 1 .. WRITERS) { W[w] = 0; P[w] = 0; bound[w] = 0; boundP[w] = 0 }
		w = 0 }
	od
}

init { atomic { run Writer(1); run Writer(2) } }

#define arrived(r) (!visible[r] || delivered[r])

#ifdef LIVENESS
ltl I11_every_committed_row_is_read { <> (finished == WRITERS && arrived(1) && arrived(2)) }
#endif
