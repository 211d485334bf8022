/*
 * What a cursor does when its server changes: promotion, restore, a clock that is behind, an address that moves.
 *
 * Nouns, and where they are in the code
 *
 *   server      0 is the primary, 1 its asynchronous standby. Each has rows, and a cursor's row
 *   row n       what it holds is its meaning: rows that a promotion or a restore lost are
 *               inserted again with other meanings, under the same ids
 *   timeline    that of a server, and the one that the cursor's row names (cursor/identity.go)
 *   history     the part of a dedup key without created_at (cursor/histories.go)
 *   seen, had   the numbers that a live worker remembers, and how far the disk of the server had its log when it
 *               was looked at or read last (cursor.Seen, processor/server.go); here also after an advance:
 *               the worker reads again soon, unless it is paused. What a server writes is counted: rows,
 *               numbers, and a pause
 *   late row    a row that the new primary, or the restored server, stamped at or before the cursor's
 *               position, since its clock is behind (sources/table/late.go)
 *   Worker      processor/find.go, server.go; cursor/acquire.go, promote.go. It has two
 *               connections: one that looks and holds the lease, one that reads
 *   Change      promotion with what was not replicated lost; the address moves then, and the old
 *               primary goes on. Or, with RESTORE, a snapshot is put back; or, with STEP, the clock of a
 *               server that stays steps back, and is right again before anything is read; or, with CRASH,
 *               the server loses what its disk does not have, and starts anew
 *   flushed     the rows that the disk has, with CRASH: producers commit without waiting for it. A
 *               commit of the worker's waits, and so does Source.harden
 *   pause       with RESTORE and PAUSE an operator pauses the process before the snapshot, after it, or never, and
 *               resumes it never. A snapshot from before takes it back. saw: a look has found the process paused
 *   noticed     a worker has seen the clock behind the cursor (processor/clock.go)
 *   younger     with RESTORE and YOUNGER the snapshot is from before the cursor was made. The restore loses it, and an operator
 *               makes it anew in that moment: Operator.prepare. It is of another origin
 *   reigned     the highest epoch of which the worker has had a lease, with YOUNGER
 *   Operator    Store.Restored, after which the worker looks for late rows; or a seek before the late row, or a
 *               retry or another seek, after which it is looked for again. No server has timeline 0
 *
 * Abstractions. The row lock, crashes within a delivery and time-outs are lease.pml; here a lease
 * is held from Acquire to the advance, in one server's lock. A number that jumps does so by JUMP.
 * One change for each run, one seek elsewhere, and one retry.
 */

#ifndef RECORDS
#define RECORDS 2
#endif
#ifndef WORKERS
#define WORKERS 1
#endif
#define JUMP 8          /* HistoryGap, lostEpochs: more than is ever used between */
#define OTHER 8         /* a row of the second time has its id and this as its meaning */
#define LATE 7          /* the meaning of the late row */
#define NUMBERS 56
#if defined(RESTORE) || defined(STEP) || defined(CRASH)
#define CHANGED 0       /* the server whose clock may be behind */
#else
#define CHANGED 1
#endif

/* Protections. Each has a switch that takes it away. */

#ifdef SEQUENCE_KEPT            /* Row.begun */
#define gap 0
#else
#define gap JUMP
#endif
#ifdef EPOCH_KEPT               /* Row.begun */
#define leap 0
#else
#define leap JUMP
#endif
#ifdef DECISION_COUNTS_ON       /* action.plan */
#define decided 1
#else
#define decided leap
#endif
#ifdef KEY_WITHOUT_HISTORY      /* Delivery.DedupKey */
#define key(s, n) (n)
#else
#define key(s, n) ((begun[s] && n > after[s]) -> n + JUMP : n)
#endif
#ifdef SERVERS_UNCHECKED        /* Process.onServer */
#define same(c) true
#else
#define same(c) (c)
#endif
#ifdef RESTORE_UNSEEN           /* Process.remember */
#define older(c) false
#else
#define older(c) (c)
#endif
#ifdef YOUNGER
#ifdef OTHER_ORIGIN_TRUSTED     /* Seen.Before: a cursor of another origin is another one */
#define smaller false
#else
#define smaller (sequence[lease] < seen || epoch[lease] < reigned)
#endif
#define reign reigned = epoch[lease]
#else
#define smaller (sequence[lease] < seen)
#define reign skip
#endif
#ifdef LOG_UNSEEN               /* Seen.On */
#define LOG_NOT_COMPARED
#endif
#ifdef LOG_OF_ONE_ORIGIN        /* Seen.Lost: of whatever cursor */
#define LOG_NOT_COMPARED
#endif
#if defined(LOG_NOT_COMPARED) || defined(OTHER_ORIGIN_TRUSTED)
#define lacks false
#else
#define lacks (restored && started[lease] != known && startedAt < had)
#endif
#ifdef PAUSE
#ifdef LOG_LEARNT_BY_READS_ALONE        /* startSQL */
#define learn skip
#else
#define learn if :: !lacks -> known = started[lease]; had = log(lease); readTo = had :: else fi
#endif
#define rests paused
#define rest if :: paused -> saw = 1; learn; goto end :: else fi
#else
#define learn skip
#define rests false
#define rest skip
#endif
#ifdef LATE_UNCHECKED           /* Process.promote */
#define overtaken false
#else
#define overtaken (lateAt > 0 && lease == CHANGED && !got[LATE] && lateAt <= position[lease])
#endif
#ifdef RESTORED_ACCEPTS         /* decideSQL */
#define look_first skip
#else
#define look_first timeline[0] = 0
#endif
#ifdef STEP_FORGOTTEN           /* Process.noteStep */
#define note_step noticed = 0
#else
#define note_step if :: noticed && lateAt <= position[0] -> halted[0] = 1 :: else fi; noticed = 0
#endif
#ifdef CRASH
#define flush(s) flushed = rows[s]
#else
#define flush(s) skip
#endif
#define log(s) (rows[s] + sequence[s] + pauses)
#ifdef UNFLUSHED_SENT           /* Source.harden */
#define harden skip
#else
#define harden if :: page > 0 && ran != started[read] -> goto end :: else -> flush(read) fi
#endif

/* Claims. None of these is ever set. */

#define claim(name, holds) assert(name || (holds))
bit I1_the_cursor_passes_only_what_was_received;
bit I10_a_pause_is_not_lost;
bit I1_no_late_row_is_left_behind;
bit I15_a_number_is_of_one_record;
bit I15_a_key_is_of_one_record;
bit I16_an_epoch_is_of_one_server;

byte rows[2], kept[2];          /* ids up to kept were there before the change */
bit again[2];                   /* what is inserted now is of the second time */
byte position[2], sequence[2], epoch[2], after[2], holder[2];
byte timeline[2] = 1, server_timeline[2] = 1;
bit begun[2], halted[2];
byte locked[2], started[2]; /* by whom; how often the server was started */
byte address, lateAt, flushed, startedAt, readTo;
bit changed, restored, noticed, sought, retried, paused, pauses, saw, pauseLost;
#ifdef RESTORE  /* a worker that starts after it cannot know */
byte deaths = 1;
#else
byte deaths;
#endif

byte meaning_of[NUMBERS], meaning_of_key[NUMBERS];
byte server_of[NUMBERS];        /* by epoch, who gave it out; 0 = none, else the server and 1 */
bit got[NUMBERS];

#define meaning(s, n) ((again[s] && n > kept[s]) -> n + OTHER : n)

inline begin_history(s) { epoch[s] = epoch[s] + leap; sequence[s] = sequence[s] + gap; begun[s] = 1; after[s] = position[s] }

inline give_epoch(e, s) {
	claim(I16_an_epoch_is_of_one_server, server_of[e] == 0 || server_of[e] == s + 1);
	server_of[e] = s + 1
}

inline replicate() {
	rows[1] = rows[0]; position[1] = position[0]; sequence[1] = sequence[0];
	epoch[1] = epoch[0]; timeline[1] = timeline[0]; holder[1] = holder[0]
}

inline late_before(p) {
	lateAt = p;
	if
	:: p > 1 -> lateAt = p - 1
	:: skip
	fi
}

active proctype Producer()
{
end:	do
	:: atomic { rows[0] < RECORDS -> rows[0]++ }
	:: atomic { changed && address == 1 && rows[1] < RECORDS -> rows[1]++ }
	od
}

#ifdef CRASH
active proctype Disk()
{
end:	do
	:: atomic { flushed < rows[0] -> flush(0) }
	od
}
#endif

active proctype Change()
{
	byte savedRows, savedPosition, savedSequence, savedEpoch, savedPaused;

	skip; /* at any time */
#ifdef STEP
	atomic { position[0] > 0 -> late_before(position[0]); noticed = 1; changed = 1 }
#elif defined(CRASH)
	atomic { rows[0] = flushed; kept[0] = flushed; again[0] = 1; locked[0] = 0; started[0]++; changed = 1 }
#elif defined(RESTORE)
	atomic {
#ifdef YOUNGER
		epoch[0] == 0;
#endif
		savedRows = rows[0]; savedPosition = position[0]; savedSequence = sequence[0]; savedEpoch = epoch[0]; savedPaused = paused }
	/* A restore ends the connections, and so the lease. Only a worker that has read the server before can notice it. */
#ifdef CLOCK_BEHIND
	readTo > savedRows + savedSequence + savedPaused;
#endif
	atomic { locked[0] = 0; started[0]++;
		rows[0] = savedRows; position[0] = savedPosition; sequence[0] = savedSequence; epoch[0] = savedEpoch;
		pauseLost = saw && !savedPaused; paused = savedPaused; pauses = savedPaused;
		kept[0] = savedRows; startedAt = log(0); restored = 1; again[0] = 1; changed = 1;
#ifdef YOUNGER
		holder[0] = 0;
#endif
#ifdef CLOCK_BEHIND
		lateAt = savedPosition
#endif
	}
#else
	do
	:: atomic { replicate() }
	:: break
	od;
	atomic { server_timeline[1] = 2; again[1] = 1; kept[1] = rows[1]; changed = 1 }
#ifdef CLOCK_BEHIND
	atomic { position[1] > 0 -> late_before(position[1]) }
#endif
	address = 1 /* the old primary goes on for those who still reach it */
#endif
}

active proctype Operator()
{
end:	do
	:: atomic { halted[0] && timeline[0] == server_timeline[0] -> /* Store.Restored */
		begin_history(0); look_first; halted[0] = 0; pauseLost = 0 }
#ifdef PAUSE
	:: atomic { !changed && !paused && !halted[0] && !locked[0] -> /* Store.Pause */
		paused = 1; pauses = 1 }
#endif
#ifdef RESTORE
	:: atomic { changed && !halted[0] && !sought -> /* a seek, before a worker has looked or after it: SeekGap */
		sought = 1; sequence[0] = sequence[0] + 2; epoch[0]++; give_epoch(epoch[0], 0) }
#endif
	:: atomic { halted[CHANGED] && lateAt > 0 -> /* the seek that the error names */
		position[CHANGED] = lateAt - 1; begin_history(CHANGED); timeline[CHANGED] = server_timeline[CHANGED]; halted[CHANGED] = 0; pauseLost = 0 }
	:: atomic { halted[CHANGED] && timeline[CHANGED] != server_timeline[CHANGED] && position[CHANGED] > lateAt && !sought -> /* a seek elsewhere, back by a record */
		sought = 1; position[CHANGED]--; begin_history(CHANGED); halted[CHANGED] = 0; pauseLost = 0;
#ifdef SEEK_SETTLES
		timeline[CHANGED] = server_timeline[CHANGED]
#endif
	}
	:: atomic { halted[CHANGED] && timeline[CHANGED] != server_timeline[CHANGED] && !retried -> /* Store.Retry */
		retried = 1; epoch[CHANGED] = epoch[CHANGED] + decided; give_epoch(epoch[CHANGED], CHANGED);
#ifdef RETRY_ACCEPTS
		begin_history(CHANGED); timeline[CHANGED] = server_timeline[CHANGED];
#endif
		halted[CHANGED] = 0; pauseLost = 0 }
	od
}

#ifdef YOUNGER
#define forget seen = 0; reigned = 0
#else
#define forget seen = 0
#endif

/* dies: the worker ends, and another one comes in its place, which remembers nothing. */
#define or_dies :: atomic { deaths == 0 -> deaths = 1; note_step; let_go(); forget; page = 0; at = 0; ran = 0; known = 0; had = 0; name = name + WORKERS; goto start }

inline let_go() {
	if
	:: locked[lease] == name -> locked[lease] = 0
	:: else
	fi
}

active [WORKERS] proctype Worker()
{
	byte name = _pid, lease, read, at, page, ran, known, had, seen, number, name_of, under;
#ifdef YOUNGER
	byte reigned;
#endif

start:	atomic { lease = address; read = address }
end:	/* Process.look, remember: an old connection stays, or is made anew */
	atomic {
		if
		:: lease = address
		:: skip
		fi;
		if
		:: read = address
		:: skip
		fi;
		note_step;
		rest;
		if
		:: halted[lease] -> goto end
		:: !halted[lease] && older(smaller || lacks) && timeline[lease] == server_timeline[lease] -> halted[lease] = 1; known = started[lease]; had = 0; goto end
		:: else
		fi;
		if
		:: sequence[lease] > seen -> seen = sequence[lease]
		:: else
		fi;
		if
		:: started[lease] != known -> known = started[lease]; had = 0
		:: else
		fi;
		learn;
		at = position[lease]
	}
	/* Process.peek */
	atomic {
#ifdef RESTORE
		if
		:: started[read] != known -> goto end /* Process.othersLook: it looks first */
		:: else
		fi;
#endif
		ran = started[read]; had = log(read); readTo = log(read);
		if
		:: rows[read] > at -> page = meaning(read, at + 1)
		:: rows[read] <= at && timeline[lease] == server_timeline[lease] -> goto end
		:: else -> page = 0 /* notePromotion looks although there is nothing to deliver */
		fi
	}
#ifdef CRASH
	atomic { harden }
#endif
	/* Store.Acquire: a promotion is noted before anything else */
	atomic {
		if
		:: halted[lease] || locked[lease] || rests -> goto end
		:: else
		fi;
		if
		:: timeline[lease] == server_timeline[lease] -> goto take
		:: else
		fi
	}
#ifdef LATE_CHECKED_AFTER
	atomic { begin_history(lease); timeline[lease] = server_timeline[lease] }
	if
	:: skip
	or_dies
	fi;
	atomic {
		if
		:: overtaken -> halted[lease] = 1; goto end
		:: else -> goto end
		fi
	}
#else
	/* Source.Late, HaltClock | Promote */
	if
	:: skip
	or_dies
	fi;
	atomic {
		if
		:: halted[lease] || locked[lease] || rests || timeline[lease] == server_timeline[lease] -> goto end
		:: else
		fi;
		if
		:: overtaken -> halted[lease] = 1; goto end
		:: else -> begin_history(lease); timeline[lease] = server_timeline[lease]; goto end
		fi
	}
#endif
take:	atomic {
		if
		:: halted[lease] || locked[lease] || rests || page == 0 -> goto end
		:: else -> locked[lease] = name
		fi;
		if
		:: holder[lease] != name -> epoch[lease]++; give_epoch(epoch[lease], lease); holder[lease] = name; flush(lease)
		:: else
		fi;
		reign;
		if /* Process.work: Process.onServer, seen.after */
		:: !(same(read == lease && ran == started[lease])) || position[lease] != at -> let_go(); read = address; lease = address; goto end
		:: else -> number = sequence[lease] + 1; name_of = key(lease, at + 1); under = epoch[lease]
		fi
	}
	/* the delivery, then the advance */
	atomic {
		claim(I1_no_late_row_is_left_behind, lateAt == 0 || got[LATE] || noticed || lease != CHANGED || locked[lease] != name || position[lease] < lateAt);
		claim(I10_a_pause_is_not_lost, !pauseLost);
		claim(I15_a_number_is_of_one_record, meaning_of[number] == 0 || meaning_of[number] == page);
		claim(I15_a_key_is_of_one_record, meaning_of_key[name_of] == 0 || meaning_of_key[name_of] == page);
		give_epoch(under, lease);
		meaning_of[number] = page; meaning_of_key[name_of] = page;
		got[page] = 1; number = 0; name_of = 0; under = 0;
		if
		:: lateAt > 0 && lease == CHANGED && at + 1 == lateAt -> got[LATE] = 1 /* beside it */
		:: else
		fi
	}
	if
	:: skip
	or_dies
	fi;
	atomic {
		if
		:: locked[lease] != name -> goto end /* the session has ended */
		:: else -> locked[lease] = 0
		fi;
		if
		:: position[lease] != at || halted[lease] -> goto end
		:: else
		fi;
		claim(I1_the_cursor_passes_only_what_was_received, got[meaning(lease, at + 1)]);
		position[lease] = at + 1; sequence[lease]++; flush(lease); had = log(lease);
		if
		:: sequence[lease] > seen -> seen = sequence[lease]
		:: else
		fi;
		goto end
	}
}
