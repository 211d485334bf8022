/*
 * The lease of one process: lock, epoch, delivery, advance, and what faults make of them.
 *
 * Nouns, and where they are in the code
 *
 *   position, epoch, holder   the cursor's row as committed (cursor.Row)
 *   lock        the row's lock: whose transaction holds it (store.lockSQL, relockSQL)
 *   Worker      a replica and the session that its lease lives in: processor/process.go,
 *               shift.go, deliver.go, call.go, progress.go; cursor/acquire.go, lease.go
 *   Sink        the receiver, and the network to it
 *   Server      PostgreSQL, where it acts by itself: ends sessions, frees the lock of a
 *               worker that fell silent, runs what was sent before the line went dead
 *   Operator    Pause, Resume and Seek (cursor/operator)
 *   faults      crash (SIGKILL), cut (the network to the server, between two commands or in
 *               the middle of one: then the server waits for the rest), kill (the session is
 *               ended, which the worker does not know: pg_terminate_backend, a restart, a
 *               SIGSTOP for longer than the lease's time-out), time-out (of a sink call,
 *               whose bytes may still arrive), unlock (what is called under the lease ends
 *               its transaction)
 *
 * A flush (cursor/internal/tables/flush.go) is a step for each of its transactions: what lies between
 * UPDATE and COMMIT nobody else can see.
 *
 * Abstractions. The source holds RECORDS committed records, numbered in their order, and
 * is read without fault: that is fence.pml. When a silent worker gives up, and when the
 * server frees its lock, is keep.pml; here the latter follows the former. The sequence is
 * the position. The first right of the last holder (othersTurn) is a courtesy and left
 * out: workers here are less polite. So are halts, dead letters, promotions and InTx.
 */

#ifndef RECORDS
#define RECORDS 2
#endif
#ifndef CHECKPOINT      /* records between two advances: Config.Checkpoint, or a batch */
#define CHECKPOINT 1
#endif
#ifndef FAULTS          /* at most 2: see late */
#define FAULTS 2
#endif
#ifndef RESTARTS        /* SIGTERM and a new start under another name: no fault */
#define RESTARTS 0
#endif
#ifndef OPERATIONS      /* seeks and pauses; while paused, the table may be altered */
#define OPERATIONS 0
#endif
#ifndef THEFTS          /* how often another worker comes between the two transactions of a */
#define THEFTS 1        /* take-over; for ever, and nobody would come to deliver */
#endif

/* Protections. Each has a switch that takes it away. */

#ifdef LOCK_IGNORED             /* FOR UPDATE SKIP LOCKED */
#define is_free(l) true
#else
#define is_free(l) (l == 0)
#endif
#ifdef EPOCH_UNCHECKED_BY_ADVANCE       /* advanceSQL: AND epoch = $4 */
#define advance_compares(c) true
#else
#define advance_compares(c) (c)
#endif
#ifdef EPOCH_UNCHECKED_BY_RELOCK        /* relockSQL: AND epoch = $5 */
#define relock_compares(c) true
#else
#define relock_compares(c) (c)
#endif
#ifdef STATE_UNCHECKED                  /* relockSQL: AND state = 'running' */
#define relock_sees(c) true
#else
#define relock_sees(c) (c)
#endif
#ifdef UPDATE_OF_NO_ROW_COMMITS         /* oneRow: beside effects the UPDATE raises, and the COMMIT in its flush is not run. */
                                        /* An advance alone in its transaction has none to commit: changedOne counts its rows */
#define raises false
#else
#define raises true
#endif
#ifdef ADVANCE_UNACKNOWLEDGED           /* shift.deliver: advance behind what Dispatch.deliver returned */
#define awaits(c) true
#else
#define awaits(c) (c)
#endif
#ifdef PEEK_UNCHECKED                   /* Process.work: seen.after != lease.Position() */
#define at_the_row(c) true
#else
#define at_the_row(c) (c)
#endif
#ifdef RESUME_KEEPS_EPOCH               /* Store.Resume */
#define resumed_epoch epoch
#else
#define resumed_epoch epoch + 1
#endif
#ifdef PAGE_OF_ANY_EPOCH                /* Process.work: a page from before the epoch is read anew (here also after a take-over) */
#define reads_anew(c) false
#else
#define reads_anew(c) (c)
#endif
#ifdef DEBT_UNCHECKED                   /* progress.due: owed.from */
#define still_owed(c) true
#else
#define still_owed(c) (c)
#endif

/* Claims, named after the invariants of docs/model/README.md. None of these is ever set. */

#define claim(name, holds) assert(name || (holds))
bit G4_effects_commit_with_the_advance_alone;
bit I1_the_cursor_passes_only_what_was_acknowledged;
bit I3_first_applied_in_order;
bit I4_sent_only_when_the_one_before_was_acknowledged;
bit I5_no_duplicate_without_a_fault;
bit I6_an_epoch_has_one_worker;
bit I6_epochs_grow;
bit I6_stale_deliveries_are_duplicates;
bit I7_the_position_only_grows;
bit I7_advanced_under_the_epoch_of_the_row;
bit I8_sent_under_the_lock;
bit I10_a_paused_process_sends_nothing;
bit I18_sent_as_the_table_is;

/* The row. Worker 1 delivered last. */

byte position, epoch = 1, holder = 1;
bit paused;
bit altered;            /* how the table stamps its rows */

#define WORKERS 2
#define SILENT 3        /* a session whose worker is gone, or cut off, and has given up */
#define TORN 4          /* the same, in the middle of a command */
byte lock;              /* 0 = free */

mtype = { none, up, unlocked, ended };
mtype session[WORKERS + 1] = none;
byte sentTo, sentEpoch; /* an advance that was on the wire when the line went dead */

byte gaps, thefts, faults, restarts, operations, down;

/* Sink calls: the record on the wire, 0 = none. Late ones nobody waits for any more. */

byte wire[WORKERS + 1], wireEpoch[WORKERS + 1];
bit answered[WORKERS + 1];
byte late[2], lateEpoch[2];

/* What the claims are about. */

byte applied, acknowledged, duplicates, topSent, topSender, topApplied;
byte sought;            /* the epoch that a seek began: what an older one sends is told by its epoch */

#define a_fault faults < FAULTS -> faults++

inline advance_row(to) {
	claim(I7_the_position_only_grows, to >= position);
	claim(I1_the_cursor_passes_only_what_was_acknowledged, to <= acknowledged);
	position = to
}

inline abandon() {
	if
	:: wire[w] != 0 && late[0] == 0 -> late[0] = wire[w]; lateEpoch[0] = wireEpoch[w]
	:: wire[w] != 0 && late[0] != 0 -> assert(late[1] == 0); late[1] = wire[w]; lateEpoch[1] = wireEpoch[w]
	:: else
	fi;
	wire[w] = 0; wireEpoch[w] = 0; answered[w] = 0
}

inline take_lock() { lock = w; session[w] = up; at = position; e = epoch }

inline let_go() { /* giveBack, or the server's part of it */
	if
	:: lock == w -> lock = 0
	:: else
	fi;
	session[w] = none
}

inline fall_silent() {
	if
	:: lock == w -> lock = SILENT
	:: else
	fi;
	session[w] = none
}

inline forget() { seen = 0; at = 0; e = 0; n = 0; to = 0; settling = 0; uncommitted = 0 }
inline owe_nothing() { owedTo = 0; owedFrom = 0; owedEpoch = 0 }

#define does_not_know(w) (session[w] == ended || session[w] == unlocked)

#define or_worker_dies   atomic { a_fault; fall_silent(); goto crashed }
#define or_line_dies     atomic { a_fault; fall_silent(); goto lost }
#define or_session_ended atomic { session[w] == ended -> goto lost }

proctype Worker(byte w)
{
	byte name = w;          /* Config.Worker: a new one at every start */
	byte seen;              /* Process.peek: the page follows this position */
	byte at, e;             /* Lease.Position, Lease.Epoch */
	byte n, to;             /* acknowledged of this chunk; where to advance to */
	byte owedEpoch, owedFrom, owedTo;       /* progress.owed; to = 0: nil */
	byte kept;              /* with READ_AHEAD_KEPT: where the page read ahead begins */
	byte reign;             /* Process.reign */
	bit knows;              /* how the source takes the table to be */
	bit settling, uncommitted;

end_idle: /* Process.pass: Look, peek; neither lock nor transaction id */
	atomic { position < RECORDS && !paused ->
		seen = position;
#if OPERATIONS
		if /* Process.began, Source.Refresh */
		:: reign != epoch -> reign = epoch; knows = altered
		:: else
		fi
#endif
	}

	/* Store.lockRow */
	atomic {
		if
		:: is_free(lock) && (gaps == 0 || thefts < THEFTS) -> thefts = thefts + (gaps > 0); take_lock()
		:: !is_free(lock) -> /* ErrHeld */
#ifndef TORN_SESSION_STAYS /* Store.endTorn: no time-out of the server applies */
			if
			:: lock == TORN -> lock = 0
			:: else
			fi;
#endif
			seen = 0; goto end_idle
		fi;
		if
		:: paused -> goto release /* workable */
		:: !paused && holder == name -> goto work
		:: else
		fi
	}

	/* Store.takeOver: UPDATE; COMMIT | BEGIN; lock */
#ifdef EPOCH_NOT_COMMITTED
	atomic { uncommitted = 1; e++; goto work }
#endif
	if
	:: atomic { session[w] == up -> epoch++; holder = name; lock = 0; gaps++ }
	:: or_session_ended
	:: or_line_dies
	:: or_worker_dies
	fi;
	atomic {
		gaps--;
		if
		:: session[w] == up && lock == 0 && holder == name && !paused -> take_lock()
		:: else -> goto lost /* ErrHeld */
		fi
	}

work:	/* Process.work */
	atomic {
#ifdef POSITION_REMEMBERED /* on any error, the row is read again */
		if
		:: owedTo != 0 -> at = owedFrom; seen = at; owe_nothing()
		:: else
		fi;
#endif
#ifdef READ_AHEAD_KEPT /* readAhead: the page is dropped when the records before it failed */
		if
		:: kept > 0 && kept < RECORDS -> at = kept; seen = at; kept = 0
		:: else
		fi;
#endif
		if /* shift.settle */
		:: owedTo != 0 && still_owed(owedEpoch == e && owedFrom == at) -> to = owedTo; settling = 1; goto advance
		:: else -> owe_nothing()
		fi;
		if
		:: at_the_row(seen == at) -> at = seen; seen = 0
		:: else -> goto release
		fi;
#if OPERATIONS
		if
		:: reads_anew(reign != e) -> reign = e; knows = altered
		:: else
		fi
#endif
	}

deliver: /* shift.deliver, shift.hand, shift.call */
	if
	:: or_session_ended /* Lease.Held, if it asks */
	:: atomic { n == 0 && restarts < RESTARTS -> restarts++; let_go(); goto start } /* shift.ending */
	:: atomic {
		claim(I4_sent_only_when_the_one_before_was_acknowledged, acknowledged >= at + n || e < sought);
		claim(I8_sent_under_the_lock, lock == w || does_not_know(w));
		claim(I10_a_paused_process_sends_nothing, !paused || does_not_know(w));
		claim(I18_sent_as_the_table_is, knows == altered || does_not_know(w));
		claim(I6_an_epoch_has_one_worker, e != topSent || topSender == name);
		claim(I6_epochs_grow, e >= topSent || lock != w);
		if
		:: e > topSent -> topSent = e; topSender = name
		:: else
		fi;
		wire[w] = at + n + 1; wireEpoch[w] = e }
	fi;

calling: /* Sink.Deliver, under the lease's context */
	if
	:: atomic { awaits(answered[w]) ->
		n++;
		if
		:: answered[w] && e >= sought && at + n > acknowledged -> acknowledged = at + n
		:: else
		fi;
		answered[w] = 0;
		if
		:: n < CHECKPOINT && at + n < RECORDS -> goto deliver
		:: else -> to = at + n; goto advance
		fi }
	:: atomic { a_fault; /* Config.Timeout: shift.failed */
		abandon();
		if
		:: n > 0 -> to = at + n; goto advance
		:: n == 0 -> goto note
		:: n == 0 -> goto release /* Lease.Fail */
		fi }
	:: atomic { session[w] == up && !uncommitted && a_fault; lock = 0; session[w] = unlocked; goto calling }
	:: or_session_ended /* Lease.keep */
	:: or_line_dies
	:: or_worker_dies
	fi;

advance: /* shift.advance, Lease.Advance: UPDATE; COMMIT | BEGIN; relock */
	atomic { owedEpoch = e; owedFrom = at; owedTo = to; n = 0 }
	if
	:: atomic { session[w] == up || session[w] == unlocked && lock == 0 ->
		session[w] = up;
#ifdef EPOCH_NOT_COMMITTED
		if
		:: uncommitted -> epoch = e; holder = name; uncommitted = 0
		:: else
		fi;
#endif
		if
		:: position < to && advance_compares(epoch == e) ->
			claim(I7_advanced_under_the_epoch_of_the_row, epoch == e);
			advance_row(to)
		:: else -> /* notAdvanced */
			claim(G4_effects_commit_with_the_advance_alone, raises);
			goto release
		fi;
		lock = 0; goto relock }
	:: or_session_ended
	:: atomic { a_fault; fall_silent(); sentTo = to; sentEpoch = e; goto lost }
	:: atomic { a_fault; fall_silent(); sentTo = to; sentEpoch = e; goto crashed }
	:: atomic { session[w] == unlocked && lock == TORN -> goto lost } /* no answer within commitTimeout */
	:: atomic { lock == w && a_fault; lock = TORN; session[w] = none; goto lost }
	:: atomic { lock == w && a_fault; lock = TORN; session[w] = none; goto crashed }
	fi;

note: /* Lease.Note: UPDATE; COMMIT | BEGIN; relock */
	if
	:: atomic { session[w] == up && advance_compares(epoch == e) -> lock = 0; to = at; goto relock }
	:: or_session_ended
	:: atomic { session[w] == unlocked -> goto release }
	fi;

relock:
	if
	:: atomic { session[w] == up ->
		at = to; to = 0; owe_nothing();
		if
		:: lock == 0 && relock_compares(epoch == e) && position == at && relock_sees(!paused) -> lock = w
		:: else -> goto release /* changed */
		fi;
		if
		:: settling || at == RECORDS -> goto release
		:: else -> goto deliver /* what was read ahead */
		fi }
	:: or_session_ended
	:: or_line_dies
	:: or_worker_dies
	fi;

lost: /* Lease.lose; the row tells what holds */
#ifdef READ_AHEAD_KEPT
	kept = at + CHECKPOINT;
#endif
release: /* Lease.Release */
	atomic { abandon(); let_go(); forget(); goto end_idle }

crashed:
	atomic {
		abandon();
#ifdef LIVENESS
		if
		:: true
		:: down + 1 < WORKERS -> down++; goto end_dead
		fi
#endif
	}
start:
	atomic { name = name + WORKERS; forget(); owe_nothing(); kept = 0; reign = 0; knows = 0; goto end_idle }
#ifdef LIVENESS
end_dead:
	false
#endif
}

inline apply(record, e) {
	if
	:: e < sought
	:: else ->
		claim(I3_first_applied_in_order, record <= applied + 1);
#if CHECKPOINT == 1
		claim(I6_stale_deliveries_are_duplicates, e >= topApplied || record <= applied);
		if
		:: e > topApplied -> topApplied = e
		:: else
		fi;
#endif
		if
		:: record > applied -> applied = record
		:: else -> duplicates++
		fi
	fi;
	claim(I5_no_duplicate_without_a_fault, duplicates <= faults * CHECKPOINT)
}

#define a_call_of(w) atomic { wire[w] != 0 -> \
		apply(wire[w], wireEpoch[w]); wire[w] = 0; wireEpoch[w] = 0; answered[w] = 1 }

active proctype Sink()
{
end:
	do
	:: a_call_of(1)
	:: a_call_of(2)
	:: atomic { late[0] != 0 -> apply(late[0], lateEpoch[0]);
		late[0] = late[1]; lateEpoch[0] = lateEpoch[1]; late[1] = 0; lateEpoch[1] = 0 }
	:: atomic { late[1] != 0 -> apply(late[1], lateEpoch[1]); late[1] = 0; lateEpoch[1] = 0 }
	od
}

#define kill(w) atomic { (session[w] == up || session[w] == unlocked) && a_fault; \
		session[w] = ended; \
		if :: lock == w -> lock = 0 :: else fi }

active proctype Server()
{
end:
	do
	:: kill(1)
	:: kill(2)
#ifndef NO_SERVER_TIMEOUT /* lockSQL: idle_in_transaction_session_timeout */
	:: atomic { lock == SILENT -> lock = 0; sentTo = 0; sentEpoch = 0 }
#endif
	:: atomic { sentTo != 0 && (lock == SILENT || lock == 0) ->
		if
		:: position < sentTo && advance_compares(epoch == sentEpoch) ->
			claim(I7_advanced_under_the_epoch_of_the_row, epoch == sentEpoch);
			advance_row(sentTo)
		:: else
		fi;
		sentTo = 0; sentEpoch = 0; lock = 0 }
	od
}

active proctype Operator()
{
	byte to;
end:
	do
	:: atomic { operations < OPERATIONS && lock == 0 -> /* Store.await */
		operations++;
		if
		:: paused = 1
		:: position > 0 -> to = 0
		:: position > 1 -> to = 1
		fi;
		if
		:: !paused ->
			position = to;
#ifndef SEEK_KEEPS_EPOCH /* Store.Seek: adopt */
			epoch++;
#endif
			sought = epoch; acknowledged = to; applied = to
		:: else
		fi;
		to = 0 }
	:: atomic { paused && !altered -> altered = 1 }
	:: atomic { paused && lock == 0 -> paused = 0; epoch = resumed_epoch }
	od
}

init { atomic { run Worker(1); run Worker(2) } }

#ifdef LIVENESS
ltl I11_the_cursor_reaches_the_end { <> (position == RECORDS) }
#endif
