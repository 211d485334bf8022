/*
 * Who gives up first: the worker that does not hear from its server, or the server that
 * does not hear from its worker. Time is counted in tenths of the lease's time-out.
 *
 * Nouns, and where they are in the code
 *
 *   silence     Lease.silence: since the last request that was answered was sent
 *   idle        for how long the server has not heard from the session, while that is in
 *               the transaction that holds the lock (idle_in_transaction_session_timeout)
 *   request     the one exchange that is under way on the lease's connection: its mutex
 *   Main        shift.call, Lease.Held, Lease.Advance, Store.acquire
 *   Keep        Lease.keep and its ticker
 *   Network     carries a request there and its answer back, each as late as it likes
 *   Clock       lets time pass, but not past what a running worker does on time
 *   Stopper     SIGSTOP and SIGCONT: time passes, and the worker does nothing
 *
 * Abstractions. One worker: what another one may do begins when the lock is free. The
 * session ends by its time-out only; other ends are in lease.pml. A new lease is taken
 * when the lock of the last one is free. The call of a sink that does not heed its
 * context goes on: what it still has on the wire is in lease.pml. Both sides' clocks run
 * alike; one that stands still while its machine is suspended is beyond this model.
 */

#define TIMEOUT 10      /* Config.Timeout */
#define PING 2          /* a pingFraction of it */
#ifdef GIVE_UP_LATE     /* giveUpFraction: the worker's patience is shorter than the server's */
#define GIVE_UP 12
#else
#define GIVE_UP 5
#endif

#ifdef HELD_UNASKED     /* shift.call: Lease.Held before every call */
#define silent_for_long false
#else
#define silent_for_long (silence >= GIVE_UP)
#endif

#ifdef LEASE_COUNTED_FROM_ITS_ANSWER    /* newLease: began is when the lock was asked for */
#define first_silence 0
#else
#define first_silence sinceSent
#endif

#ifdef ADVANCE_COUNTED_FROM_ITS_ANSWER  /* Lease.flush: answered is when it was sent */
#define next_silence 0
#else
#define next_silence sinceSent
#endif

/* Claims. None of these is ever set. */

#define claim(name, holds) assert(name || (holds))
bit I8_calls_run_under_the_lock;        /* but for one that was checked before a stop */
bit I11_a_lease_is_kept_while_the_network_answers;

bit locked;             /* the server: this session holds the lock */
byte idle;

mtype = { no_lease, lease, over };
mtype state = no_lease;
bit checked;            /* Held has returned, and the record is about to be sent */
bit calling;            /* a sink call runs */
bit excused;            /* it was stopped since it was checked, and has not heard from the server since */
bit stopped;

byte silence, ticker;   /* ticker: until the next tick; at 0 it waits for keep */

mtype = { nothing, asked, answered, refused };
mtype request = nothing;
mtype = { nobody, by_main, by_keep, by_held };
mtype who = nobody;
byte sinceSent, limit;

#define capped(x) ((x) > TIMEOUT + 2 -> TIMEOUT + 2 : (x))
#define patience (GIVE_UP > silence + PING -> GIVE_UP - silence : PING)

inline ask(by) { request = asked; who = by; sinceSent = 0 }
inline reset() { request = nothing; who = nobody; sinceSent = 0; limit = 0 }
inline lose() { /* Lease.lose: the context ends, and with it the call */
#ifdef PROMPT /* every answer comes within the tick in which it was asked for */
	claim(I11_a_lease_is_kept_while_the_network_answers, false);
#endif
	state = over; checked = 0; calling = 0; excused = 0
}

#define main_is_free (!stopped && state == lease && !calling && !checked && who != by_main && who != by_held)

active proctype Main()
{
end:
	do
	:: atomic { !stopped && state == no_lease && !locked && request == nothing ->
		ask(by_main); limit = 0 } /* Store.lockRow */

	:: atomic { main_is_free && !silent_for_long ->
		checked = 1 } /* Lease.Held */
	:: atomic { main_is_free && silent_for_long && request == nothing ->
		limit = patience; ask(by_held) }
	:: atomic { !stopped && checked ->
		claim(I8_calls_run_under_the_lock, locked || excused);
		checked = 0; calling = 1 }
	:: atomic { !stopped && calling -> calling = 0; excused = 0 }

	:: atomic { main_is_free && request == nothing ->
		limit = 0; ask(by_main) } /* Lease.Advance: flushTimeout is no matter here */

	:: atomic { !stopped && state == over && request == nothing && !locked -> /* Lease.Release */
		state = no_lease; silence = 0; ticker = 0; idle = 0 }
	od
}

#define ping_is_due (!stopped && state == lease && ticker == 0 && who != by_keep)
#define ping_is_overdue (!stopped && limit > 0 && sinceSent >= limit)

active proctype Keep()
{
end:
	do
#ifndef NO_PINGS
	:: atomic { ping_is_due ->
		ticker = PING;
		if
		:: request == nothing -> limit = patience; ask(by_keep)
		:: else /* whoever holds the connection hears from the server himself */
		fi }
#endif
	:: atomic { ping_is_overdue -> reset(); lose() }
	od
}

active proctype Network()
{
end:
	do
	:: atomic { request == asked ->
		if
		:: state == no_lease -> locked = 1; idle = 0; request = answered
		:: state != no_lease && locked -> idle = 0; request = answered
		:: else -> request = refused
		fi }
	:: atomic { !stopped && request == answered ->
		if
		:: state == no_lease -> state = lease; silence = first_silence; ticker = PING
		:: state == lease && who == by_main -> silence = next_silence
		:: state == lease && who != by_main -> silence = sinceSent
		:: else
		fi;
#ifdef HELD_ASKS_ONCE /* Lease.Held: the answer may itself be old, so it is asked again */
		checked = (who == by_held && state == lease -> 1 : checked);
#endif
		if
		:: silence < GIVE_UP -> excused = 0
		:: else
		fi;
		reset() }
	:: atomic { !stopped && request == refused -> reset(); lose() }
#ifndef PROMPT
	:: atomic { !stopped && who == by_main && request != nothing && state == lease -> reset(); lose() }
#endif
	:: atomic { locked && idle >= TIMEOUT -> locked = 0; idle = 0;
		claim(I8_calls_run_under_the_lock, !calling || excused) }
	od
}

#ifdef PROMPT
#define on_its_way (request != nothing)
#else
#define on_its_way false
#endif

#ifdef NO_PINGS
#define due false
#else
#define due ping_is_due
#endif

active proctype Clock()
{
end:
	do
	:: atomic { !(checked && !stopped) && !due && !ping_is_overdue && !on_its_way ->
		if :: locked -> idle = (idle < TIMEOUT -> idle + 1 : idle) :: else fi;
		if :: state == lease -> silence = capped(silence + 1); ticker = (ticker > 0 -> ticker - 1 : 0) :: else fi;
		if :: request != nothing -> sinceSent = capped(sinceSent + 1) :: else fi }
	od
}

#ifndef PROMPT
active proctype Stopper()
{
end:
	do
	:: atomic { !stopped -> stopped = 1; excused = (checked || calling) || excused }
	:: atomic { stopped -> stopped = 0 }
	od
}
#endif
