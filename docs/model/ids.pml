/*
 * What becomes of a cursor when the sequence of the ids starts again: order id, dedup keys of ids alone.
 *
 * Nouns, and where they are in the code
 *
 *   row         an id, and what it holds: its record, a number of its own. 0 is no row
 *   last        the last id of the sequence (layout.lastID)
 *   Reset       TRUNCATE … RESTART IDENTITY, which the catalog shows, or a DELETE and setval, which it does not
 *   catalog     it shows a reset since the horizon (layout.recount, Store.Horizon)
 *   mark[i]     of the history that id i belongs to (cursor/histories.go): it is in the dedup key
 *   Worker      processor/find.go (look), turn.go (peek), server.go (behind), ahead.go; sources/table/read.go (check).
 *               The lock of the row is lease.pml; here it keeps operators and other workers away
 *   Operator    Store.Retry, Operator.Seek, Forget; then Process.make or Operator.prepare
 *   met, knows  a worker has met a reset and keeps that until the row has it (Process.reset); how many workers do
 *   unread      no read has met the last reset yet, or what one found is lost with its worker
 *   told        the process halted over the last reset: the error says what is not read. What an operator
 *               leaves behind then is known to him
 *
 * What is taken for granted, since no reader can see it (guarantees.md, "When not to use it"): ids do not pass the cursor
 * again between a reset and the next read; nor between that read and the halt, if the worker is lost in between, or
 * an operator seeks back or gives the cursor up; a reset is not to between the cursor and what was sent. The last four switches
 * show each of these.
 *
 * Abstractions. A page is one record. A reset is a moment, and so is a decision with the look at the source before it.
 */

#ifndef IDS
#define IDS 2
#endif
#ifndef RECORDS         /* that are ever inserted */
#define RECORDS 3
#endif
#ifndef RESETS
#define RESETS 1
#endif
#ifndef DECISIONS       /* of the operator */
#define DECISIONS 2
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef WORKERS
#define WORKERS 1
#endif
#define GAP 2           /* SeekGap: more than is ever sent past the cursor */
#define MARKS (DECISIONS + 1)
#define NUMBERS 24

/* Protections. Each has a switch that takes it away. */

#ifdef SEQUENCE_UNCHECKED       /* Source.check */
#define before(a) false
#else
#define before(a) ((a) > 0 && last < (a))
#endif
#ifdef HALT_NOT_DURABLE         /* Store.HaltReset: the worker reads again later */
#define halt skip
#else
#define halt halted = 1; told = 1; unread = 0; settle(position)
#endif
#ifdef SEEK_BEFORE_THE_HISTORY  /* Row.recounted: ids may have come past the position since */
#define from(p) (p)
#else
#define from(p) 0
#endif
#ifdef RETRY_KEEPS_HISTORY      /* Store.Retry */
#define retry_begins skip
#else
#define retry_begins begin(from(position))
#endif
#ifdef SEEK_KEEPS_HISTORY       /* Store.Seek, SeekAnew */
#define seek_begins false
#else
#define seek_begins (halted || repeats)
#endif
#ifdef NUMBERS_GO_ON            /* Store.Retry, Seek */
#define gap 0
#else
#define gap GAP
#endif
#ifdef EPOCH_KEPT               /* Store.Retry, Seek */
#define next_epoch skip
#else
#define next_epoch epoch++
#endif
#ifdef FORGET_KEEPS_HISTORY     /* Source.KeysMayRepeat, as Process.make and Operator.prepare ask it */
#define create_begins false
#else
#define create_begins repeats
#endif
#ifdef CATALOG_IGNORED          /* layout.recount */
#define repeats before(position)
#else
#define repeats (before(position) || catalog)
#endif
#ifdef FORGET_DROPS_HALT        /* Store.Forget */
#define may_forget true
#else
#define may_forget !halted
#endif
#ifdef FORGET_DROPS_HISTORIES   /* the table cursor_past, from which a new cursor takes them */
#define drop_histories for (i : 1 .. IDS) { mark[i] = 0 } i = 0
#else
#define drop_histories skip
#endif
#ifdef AHEAD_FORGETS            /* Process.seesReset, of a read under the lease */
#define ahead_meets unread = 0; goto start
#else
#define ahead_meets meet; goto end
#endif
#ifdef PASSED_BETWEEN_READS     /* not ours: the sequence may pass the cursor again before it is read */
#define may_pass true
#else
#define may_pass (!unread || position == 0 || last + 1 < position || gone && catalog)
#endif
#ifdef RESET_TO_WHAT_WAS_SENT   /* not ours: the sequence may be set to between the cursor and what was sent */
#define may_reset(v) true
#else
#define may_reset(v) (v < position || !used_above(v) && inHand[2] <= v && inHand[3] <= v)
#endif
#ifdef LOST_BEFORE_THE_HALT     /* not ours: the ids have passed the cursor, and the worker that has met the reset is lost */
#define may_die true
#else
#define may_die (!hidden || knows > 1 || position < at && epoch != under)
#endif
#ifdef BACK_BEFORE_THE_HALT     /* not ours: they have passed it, and an operator moves the cursor back before the worker has its halt */
#define may_go_back true
#else
#define may_go_back !(knows && hidden && !catalog)
#endif
#define hidden (!told && last >= position)

/* Claims. None of these is ever set. */

#define claim(name, holds) assert(name || (holds))
bit I1_no_row_is_passed_over_silently;
bit I15_a_number_is_of_one_record;
bit I15_a_key_is_of_one_record;

/* The table. */

byte last, records, resets;
byte row[IDS + 1];

/* The cursor. */

byte position, sequence, epoch;
byte mark[IDS + 1], marks;
bit halted, gone, catalog;
byte locked, decisions, deaths, knows;

/* What happened. */

bit unread, told = 1;
byte inHand[4];                 /* the id of the page that a worker has read, by its _pid */
bit settled[RECORDS + 1];       /* a record that was delivered, or that someone knows not to be */
byte of_key[MARKS * (IDS + 1)], of_number[NUMBERS];

#define key(i) (mark[i] * (IDS + 1) + (i))
#define used(i) (of_key[key(i)] != 0)
#define used_above(v) (v < 1 && used(1) || v < 2 && used(2) || used_third)
#define silent(i) (i <= position && row[i] != 0 && !settled[row[i]])

#if IDS > 2 /* no seek and no reset is to there */
#define used_third used(3)
#define silent_third silent(3)
#else
#define used_third false
#define silent_third false
#endif

inline begin(a) { /* Histories.begin */
	marks++;
	for (i : 1 .. IDS) {
		if
		:: i > a -> mark[i] = marks
		:: else
		fi
	}
	i = 0
}

inline settle(p) { /* what is in the table up to there is known not to be sent */
	for (i : 1 .. IDS) {
		if
		:: i <= p && row[i] != 0 -> settled[row[i]] = 1
		:: else
		fi
	}
	i = 0
}

inline reset(v) {
	resets++; last = v;
	for (i : 1 .. IDS) {
		if
		:: i > v -> row[i] = 0
		:: else
		fi
	}
	i = 0; unread = 1; told = 0
}

active proctype Producer()
{
	byte i;
end:	do
	:: atomic { last < IDS && records < RECORDS && may_pass ->
		last++; records++; row[last] = records;
		if
		:: gone || told && last <= position -> settled[records] = 1
		:: else
		fi }
	:: atomic { resets < RESETS && last > 0 && (may_reset(0) || gone) -> reset(0); catalog = 1 } /* TRUNCATE */
	:: atomic { resets < RESETS && last > 0 && may_reset(0) -> reset(0) } /* setval */
	:: atomic { resets < RESETS && last > 1 && may_reset(1) -> reset(1) }
	od
}

inline decided() { decisions++; sequence = sequence + gap; next_epoch; halted = 0 }

inline seek(t) {
	if
	:: seek_begins ->
		if
		:: t < position -> begin(from(t))
		:: else -> begin(from(position))
		fi
	:: else
	fi;
	if
	:: t != position -> catalog = 0 /* the horizon */
	:: else
	fi;
	settle(t); position = t; decided()
}

#define may_decide (decisions < DECISIONS && !gone && !locked)

active proctype Operator()
{
	byte i;
end:	do
	:: atomic { may_decide && halted -> retry_begins; settle(position); decided() }
	:: atomic { may_decide && (position == 0 || may_go_back) -> seek(0) }
	:: atomic { may_decide && last >= 1 && (position <= 1 || may_go_back) -> seek(1) } /* Operator.find reads there */
	:: atomic { may_decide && last >= 2 -> seek(2) }
	:: atomic { may_decide && may_forget && may_go_back -> /* Store.Forget */
		gone = 1; halted = 0; unread = unread || knows && last < position }
	:: atomic { gone -> /* a worker that is started, or an operator: start: beginning */
		if
		:: create_begins -> begin(0)
		:: else -> drop_histories
		fi;
		for (i : 1 .. RECORDS) { settled[i] = 0 }
		i = 0;
		gone = 0; unread = 0; told = 1; catalog = 0; position = 0; decided() }
	od
}

#define dies deaths < DEATHS -> deaths++


inline read(a) { /* Source.Read: the mark is held against the position */
	page = 0; id = 0; back = before(a); unread = unread && back;
	for (i : 1 .. IDS) {
		if
		:: !back && id == 0 && i > a && row[i] != 0 -> id = i; page = row[i]
		:: else
		fi
	}
	i = 0; inHand[_pid] = id
}

/* Process.seesReset: at and under are kept, too */
#define meet met = 1; knows++; unread = 0; page = 0; id = 0; back = 0; inHand[_pid] = 0

active [WORKERS] proctype Worker()
{
	byte at, under, page, id, i;
	bit back, met;

start:	atomic { inHand[_pid] = 0; at = 0; under = 0; page = 0; id = 0; back = 0; met = 0 }
end:	if
	:: atomic { met && !locked -> /* Process.noteReset, before anything else; ErrHeld: later */
		knows--;
		if
		:: halted || gone -> skip
		:: !halted && !gone && position < at && epoch != under -> skip /* an operator has moved it back */
		:: else -> halt
		fi;
		goto start
	}
	:: atomic { met && may_die && dies; knows--; unread = unread || !knows && !told && last < position; goto start }
	:: atomic { !met && !gone && !halted -> /* Process.look, peek */
		at = position; under = epoch;
		read(at);
		if
		:: back -> meet; goto end
		:: else
		fi;
		claim(I1_no_row_is_passed_over_silently, at != position || knows || !(silent(1) || silent(2) || silent_third));
		if
		:: page == 0 -> goto start
		:: else
		fi
	}
	fi;
	/* Store.Acquire; Process.work: a page of another position or epoch is read again */
	atomic {
		if
		:: locked || halted || gone || position != at || epoch != under -> goto start
		:: else -> locked = _pid
		fi
	}
	/* the delivery, then the advance */
send:	atomic {
		claim(I15_a_key_is_of_one_record, of_key[key(id)] == 0 || of_key[key(id)] == page);
		claim(I15_a_number_is_of_one_record, of_number[sequence + 1] == 0 || of_number[sequence + 1] == page);
		of_key[key(id)] = page; of_number[sequence + 1] = page
	}
	if
	:: skip
	:: atomic { dies; locked = 0; goto start }
	fi;
	atomic { settled[page] = 1; position = id; sequence++; catalog = 0; at = id }
	/* shift.readAhead */
	atomic {
		read(at);
		if
		:: back -> locked = 0; ahead_meets
		:: !back && page == 0 -> locked = 0; goto start
		:: page != 0 -> goto send
		fi
	}
}
