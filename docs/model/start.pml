/*
 * The fence of one source whose rows are stamped with the start of a transaction: now() and
 * statement_timestamp(). fence.pml is that of stamps made after the lock.
 *
 * Nouns, and where they are in the code
 *
 *   Session     of a client. It waits for a message, takes it, is stamped, shows that it is at work, and runs
 *               transactions; then it is idle again. A transaction's stamp is the arrival of the message, or,
 *               in a procedure that commits, a time of its own. It may be prepared
 *   Reader      Source.Read, one flush after another (layout.statements), and the cursor behind
 *   mark        statement 1 (layout.markSQL)
 *   waited      who waits for a message, first part of statement 2 (waitingSQL in activity.go)
 *   since       what each session shows, second part (activitySQL): the earliest of xact_start, and
 *               query_start while it is at work, or state_change while it is idle
 *   seenP       who has prepared, third part (preparedSQL)
 *   bounds      fence.next in fence.go, startedWriters in activity.go
 *
 * Abstractions. As in fence.pml: a statement's snapshot is a moment, what a read returns is delivered, there is no
 * slack. Row 1 is of the session. Row 2 is stamped and committed in one step, by another one: it is what overtakes row 1.
 * Bounds of several sessions are only compared, so one is enough.
 */

#define SESSIONS 1
#define ROWS 2
#ifndef LAST            /* where the clock ends */
#define LAST 5
#endif
#ifndef MESSAGES        /* of one session */
#define MESSAGES 1
#endif
#ifndef TRANSACTIONS    /* of one session */
#define TRANSACTIONS 2
#endif
#ifndef PREPARES        /* PREPARE TRANSACTION */
#define PREPARES 0
#endif
#define none 100        /* later than any time */

/* Protections. Each has a switch that takes it away. */

#ifdef BETWEEN_IGNORED          /* earliest: the arrival of the message counts, also between two transactions */
#define at_work(w) none
#else
#define at_work(w) query[w]
#endif
#ifdef IDLE_IGNORED             /* startedWriters: an idle session is a writer unless it was seen to wait */
#define idle(w) none
#else
#define idle(w) (waited[w] -> none : changed[w])
#endif

#define claim(name, holds) assert(name || (holds))
bit I1_nothing_commits_behind_the_cursor;

/* The server. */

byte now = 1;
byte at[ROWS + 1];          /* 0: no such row */
bit visible[ROWS + 1];
bit busy[SESSIONS + 1];         /* it does not wait for its client */
byte query[SESSIONS + 1];       /* query_start of one that shows that it is at work; 0: it shows that it is idle */
byte xact[SESSIONS + 1];        /* xact_start; 0: in no transaction */
byte changed[SESSIONS + 1];     /* state_change of one that is idle */
bit prepared[SESSIONS + 1];
byte prepares;

/* The reader. */

byte lastAt, lastId;
bit delivered[ROWS + 1];
bit known;
byte lastMark, lastLowest;
bit P[SESSIONS + 1];
byte boundP[SESSIONS + 1];

#define passed(r) (at[r] < lastAt || at[r] == lastAt && r <= lastId)
#define lower(a, b) ((a) < (b) -> (a) : (b))

inline commit() {
	if
	:: at[w] != 0 && !visible[w] ->
		visible[w] = 1;
		claim(I1_nothing_commits_behind_the_cursor, delivered[w] || !passed(w))
	:: else
	fi
}

proctype Session(byte w)
{
	byte arrived, messages, transactions;
waiting:
	if
	:: atomic { messages < MESSAGES && !prepared[w] -> messages++; busy[w] = 1 }
	:: goto end
	fi;
	if      /* stamped, and shown only after that */
	:: atomic { now + 1 < LAST -> now++; arrived = now }
	:: atomic { arrived = now }
	fi;
	query[w] = arrived;
working:
	if
	:: atomic { transactions < TRANSACTIONS -> transactions++; xact[w] = arrived }
	:: atomic { transactions < TRANSACTIONS && now + 1 < LAST -> transactions++; now++; xact[w] = now }
	:: goto done
	fi;
	if
	:: atomic { at[w] == 0 -> at[w] = xact[w] }     /* now() */
	:: atomic { at[w] == 0 -> at[w] = arrived }     /* statement_timestamp() */
	:: skip
	fi;
	if
	:: busy[w] = 0; busy[w] = 1     /* it waits for its client in the transaction */
	:: skip
	fi;
	if
	:: d_step { commit() }
	:: atomic { at[w] != 0 && !visible[w] && prepares < PREPARES -> prepares++; prepared[w] = 1 }
	fi;
	xact[w] = 0;
	if
	:: atomic { prepared[w] -> query[w] = 0; changed[w] = now }
	:: else -> goto working
	fi;
	d_step { commit() }     /* COMMIT PREPARED, of anyone */
	prepared[w] = 0;
	goto end;
done:
	atomic { query[w] = 0; changed[w] = now }
	atomic { busy[w] = 0; arrived = 0; goto waiting }
end:
	skip
}

inline take_waiting() {
	for (w : 1 .. SESSIONS) { waited[w] = !busy[w] }
	w = 0
}

inline take_sessions() {
	for (w : 1 .. SESSIONS) {
#ifdef STATES_FIRST
		isIdle[w] = query[w] == 0 && xact[w] == 0;
#endif
		since[w] = (query[w] != 0 -> at_work(w) : idle(w));
		if :: xact[w] != 0 -> since[w] = lower(since[w], xact[w]) :: else fi
	}
	w = 0
}

inline take_prepared() {
	for (w : 1 .. SESSIONS) { seenP[w] = prepared[w] }
	w = 0
}

inline next() {
	fence = mark;
	lowest = none;
	for (w : 1 .. SESSIONS) {
		fence = lower(fence, since[w]);
		lowest = lower(lowest, since[w]);
		if
		:: seenP[w] ->
#ifdef PREPARED_AS_NEW
			boundP[w] = (!known -> 0 : (P[w] -> boundP[w] : lastMark));
#else
			boundP[w] = (!known -> 0 : (P[w] -> boundP[w] : lower(lastMark, lastLowest)));
#endif
			fence = lower(fence, boundP[w]);
			lowest = lower(lowest, boundP[w])
		:: else -> boundP[w] = 0
		fi;
		P[w] = seenP[w]; seenP[w] = 0; since[w] = 0; waited[w] = 0
	}
	w = 0; known = 1; lastMark = mark; lastLowest = lowest; lowest = 0
}

inline deliver() {
	for (i : 1 .. ROWS) {
		for (w : 1 .. ROWS) {
			if
			:: visible[w] && !passed(w) && at[w] < fence && (first == 0 || at[w] < at[first]) -> first = w
			:: else
			fi
		}
		if
		:: first != 0 -> delivered[first] = 1; lastAt = at[first]; lastId = first
		:: else
		fi;
		first = 0
	}
	w = 0; i = 0; mark = 0; fence = 0
}

active proctype Reader()
{
	byte mark, fence, lowest, first, i, w;
	byte since[SESSIONS + 1];
	bit waited[SESSIONS + 1], seenP[SESSIONS + 1];
#ifdef STATES_FIRST
	bit isIdle[SESSIONS + 1];
#endif
end:
	do
	::
		d_step { now = lower(now + 1, LAST); mark = now }
#ifdef PREPARED_FIRST           /* layout.writerQueries: what is prepared meanwhile is seen by its session, or last */
		d_step { take_prepared() }
#endif
#ifdef STATES_FIRST             /* layout.writerQueries: idle counts if it is seen after the waiting */
		d_step { take_sessions() }
		d_step {
			for (w : 1 .. SESSIONS) { if :: isIdle[w] && !busy[w] -> since[w] = none :: else fi; isIdle[w] = 0 }
			w = 0 }
#else
		d_step { take_waiting() }
		d_step { take_sessions() }
#endif
#ifndef PREPARED_FIRST
		d_step { take_prepared() }
#endif
		d_step { next(); deliver() }
	od
}

proctype Single()
{
	atomic { at[2] = now; visible[2] = 1 }
}

init { atomic { run Session(1); run Single() } }
