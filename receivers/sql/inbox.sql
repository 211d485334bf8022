CREATE TABLE IF NOT EXISTS public.inbox_process (
	receiver text   NOT NULL,
	process  text   NOT NULL,
	stream   text   NOT NULL,
	origin   text   NOT NULL,
	epoch    bigint NOT NULL,
	sequence bigint NOT NULL,
	PRIMARY KEY (receiver, process, stream)
) WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS public.inbox (
	receiver    text        NOT NULL,
	process     text        NOT NULL,
	dedup_key   text        NOT NULL,
	received_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
	PRIMARY KEY (receiver, process, dedup_key)
);

CREATE INDEX IF NOT EXISTS inbox_received_at ON public.inbox (receiver, received_at);

-- inbox_noted returns a dedup key or a stream as the tables have it: itself, or its SHA-256 if it is long.
CREATE OR REPLACE FUNCTION public.inbox_noted(text) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog AS $$
	SELECT CASE WHEN octet_length(convert_to($1, 'UTF8')) <= 500 THEN $1 ELSE 'sha256:' || encode(sha256(convert_to($1, 'UTF8')), 'hex') END
$$;

-- inbox_lock locks the notes of a stream, or makes them, and returns them. A call that waited sees the newest version. It
-- notes a larger epoch, unless the origin is another one. Such an epoch begins with this message, so the record before it
-- is the last one: last.
CREATE OR REPLACE FUNCTION public.inbox_lock(receiver text, process text, stream text, origin text, epoch bigint, last bigint)
RETURNS public.inbox_process
LANGUAGE sql SET search_path = pg_catalog AS $$
	INSERT INTO public.inbox_process AS p (receiver, process, stream, origin, epoch, sequence)
	VALUES ($1, $2, $3, $4, $5, 0)
	ON CONFLICT (receiver, process, stream) DO UPDATE SET
		epoch = CASE WHEN p.origin = excluded.origin THEN greatest(p.epoch, excluded.epoch) ELSE p.epoch END,
		sequence = CASE WHEN p.origin = excluded.origin AND excluded.epoch > p.epoch THEN least(p.sequence, $6) ELSE p.sequence END
	RETURNING p.*
$$;

-- inbox_enter notes the epoch of a message, unless it is a replay: its receiver, process, origin, epoch, sequence, whether it
-- is a replay, and its stream, which is '' where all records have one order. It locks the notes until the transaction ends.
-- It returns them; those of another origin are left as they are. An error of class 22 means that the message is no record.
CREATE OR REPLACE FUNCTION public.inbox_enter(text, text, text, bigint, bigint, boolean DEFAULT false, text DEFAULT '')
RETURNS public.inbox_process
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
	process_notes public.inbox_process;
BEGIN
	IF num_nulls($1, $2, $3, $4, $5, $6, $7) > 0 OR '' IN ($1, $2, $3) OR $4 < 1 OR $5 < 1 THEN
		RAISE 'the request is no record: it lacks a process, an origin, a sequence or an epoch' USING ERRCODE = 'invalid_parameter_value';
	END IF;
	-- All streams of a process have one origin. Its own row stays locked until the stream has a row.
	PERFORM FROM public.inbox_process AS p WHERE p.receiver = $1 AND p.process = $2 AND p.stream = public.inbox_noted($7);
	IF NOT FOUND AND $7 <> '' THEN
		process_notes := public.inbox_lock($1, $2, '', $3, 0, $5 - 1);
		IF process_notes.origin <> $3 THEN
			RETURN process_notes;
		END IF;
	END IF;
	-- A replay begins no epoch: what its worker sends in its turn may have any number.
	RETURN public.inbox_lock($1, $2, public.inbox_noted($7), $3, CASE WHEN $6 THEN 0 ELSE $4 END, $5 - 1);
END
$$;

-- inbox_receive decides about a message of a receiver: its process, origin, epoch, sequence, dedup key, whether it is a
-- replay, whether the receiver wants no gap, and its stream. Call it in the transaction of the effect, which has to be
-- READ COMMITTED. It notes what it decides, and locks the notes of the stream until the transaction ends.
--
--   apply       apply the record, then commit
--   duplicate   the record was applied: do nothing, commit, and answer 200
--   origin      another sender uses the name: answer 409; answer is the origin that is noted
--   stale       another worker has taken over: answer 409; answer is the largest epoch
--   late        a record after it has come: answer 409; answer is the last sequence
--   gap         a record is missing: answer 428; answer is the last sequence
--
-- An error of class 22 means that the message is no record: answer 400.
CREATE OR REPLACE FUNCTION public.inbox_receive(text, text, text, bigint, bigint, text, boolean DEFAULT false, boolean DEFAULT false, text DEFAULT '')
RETURNS TABLE (outcome text, answer text)
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
	before public.inbox_process := public.inbox_enter($1, $2, $3, $4, $5, $7, $9);
	sequence bigint := CASE WHEN $7 THEN 0 ELSE $5 END; -- a replay is out of turn, and leaves the sequence
	repeated boolean;
BEGIN
	IF $6 = '' OR num_nulls($6, $8) > 0 THEN
		RAISE 'the request is no record: it lacks a dedup key' USING ERRCODE = 'invalid_parameter_value';
	END IF;
	IF $8 AND $9 <> '' THEN
		RAISE 'a stream lacks numbers by nature, so no gap can be refused in it' USING
			ERRCODE = 'feature_not_supported', HINT = 'Leave the stream empty if all records of the process come in one order.';
	END IF;
	repeated := EXISTS (SELECT FROM public.inbox AS i WHERE i.receiver = $1 AND i.process = $2 AND i.dedup_key = public.inbox_noted($6));
	outcome := CASE
		WHEN before.origin <> $3 THEN 'origin'
		WHEN repeated THEN 'duplicate' -- before stale: a broker that was set back repeats what is applied, and that is no harm
		WHEN $4 < before.epoch THEN 'stale'
		WHEN $7 THEN 'apply'
		WHEN $5 <= before.sequence THEN 'late'
		WHEN $8 AND before.sequence > 0 AND $5 > before.sequence + 1 THEN 'gap'
		ELSE 'apply'
	END;
	answer := CASE outcome
		WHEN 'origin' THEN before.origin
		WHEN 'stale' THEN before.epoch::text
		WHEN 'late' THEN before.sequence::text
		WHEN 'gap' THEN before.sequence::text
	END;
	IF outcome = 'apply' THEN
		INSERT INTO public.inbox (receiver, process, dedup_key) VALUES ($1, $2, public.inbox_noted($6)) ON CONFLICT DO NOTHING;
		outcome := CASE WHEN FOUND THEN 'apply' ELSE 'duplicate' END; -- meanwhile it came in another stream
	END IF;
	IF outcome = 'apply' OR outcome = 'duplicate' AND $4 >= before.epoch THEN
		PERFORM public.inbox_accept_gap($1, $2, sequence, $9);
	END IF;
	RETURN NEXT;
END
$$;

-- inbox_accept_origin has inbox_receive accept messages of a process from that origin from now on, and refuse those of the
-- one before: its arguments are receiver, process and origin. It is for an operator who knows that one database has
-- replaced another. Epochs and sequences begin again, in all streams. The dedup keys stay.
CREATE OR REPLACE FUNCTION public.inbox_accept_origin(text, text, text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
	IF num_nulls($1, $2, $3) > 0 OR '' IN ($1, $2, $3) THEN
		RAISE 'a receiver, a process and an origin are needed' USING ERRCODE = 'invalid_parameter_value';
	END IF;
	-- This row is locked first, so that no stream begins meanwhile.
	INSERT INTO public.inbox_process AS p (receiver, process, stream, origin, epoch, sequence)
	VALUES ($1, $2, '', $3, 0, 0)
	ON CONFLICT (receiver, process, stream) DO UPDATE SET origin = excluded.origin, epoch = 0, sequence = 0
	WHERE p.origin <> excluded.origin;
	UPDATE public.inbox_process AS p SET origin = $3, epoch = 0, sequence = 0
	WHERE p.receiver = $1 AND p.process = $2 AND p.origin <> $3;
END
$$;

-- inbox_accept_gap has inbox_receive accept the record after a number, although records up to it have not come: its
-- arguments are receiver, process, number and stream. It is for an operator who knows why they have not.
CREATE OR REPLACE FUNCTION public.inbox_accept_gap(text, text, bigint, text DEFAULT '') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
	UPDATE public.inbox_process AS p SET sequence = greatest(p.sequence, $3)
	WHERE p.receiver = $1 AND p.process = $2 AND p.stream = public.inbox_noted($4);
	IF NOT FOUND THEN
		RAISE 'nothing has come from process % in stream %: the first record may have any number', quote_literal($2), quote_literal($4);
	END IF;
END
$$;

-- inbox_rename moves what is noted of a process to another name, as an operator did with `process rename`. Its arguments
-- are receiver, old name and new name. Call it before a worker sends under the new name: otherwise records that come again
-- are applied again.
CREATE OR REPLACE FUNCTION public.inbox_rename(text, text, text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
BEGIN
	IF num_nulls($1, $2, $3) > 0 OR '' IN ($1, $2, $3) THEN
		RAISE 'a receiver, the old name and the new name of a process are needed' USING ERRCODE = 'invalid_parameter_value';
	END IF;
	IF EXISTS (SELECT FROM public.inbox_process AS p WHERE p.receiver = $1 AND p.process = $3) THEN
		RAISE 'rename process %: receiver % has records under the name % already', quote_literal($2), quote_literal($1), quote_literal($3);
	END IF;
	UPDATE public.inbox_process AS p SET process = $3 WHERE p.receiver = $1 AND p.process = $2;
	IF NOT FOUND THEN
		RAISE 'rename process %: receiver % has no record of it', quote_literal($2), quote_literal($1);
	END IF;
	UPDATE public.inbox AS i SET process = $3 WHERE i.receiver = $1 AND i.process = $2;
END
$$;

-- inbox_prune forgets keys of a receiver that came longer ago than an interval, at most some of them, and returns how many.
-- Each call is one short transaction. A record that comes again after that is applied again, unless its epoch or its
-- sequence is refused.
CREATE OR REPLACE FUNCTION public.inbox_prune(text, interval, integer DEFAULT 500) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog AS $$
DECLARE
	forgotten bigint;
BEGIN
	IF num_nulls($1, $2, $3) > 0 OR $2 <= interval '0' OR $3 < 1 THEN
		RAISE 'a receiver, a positive interval and a positive number are needed' USING ERRCODE = 'invalid_parameter_value';
	END IF;
	DELETE FROM public.inbox WHERE ctid = ANY (ARRAY(
		SELECT i.ctid FROM public.inbox AS i
		WHERE i.receiver = $1 AND i.received_at < clock_timestamp() - $2
		ORDER BY i.received_at LIMIT $3
	));
	GET DIAGNOSTICS forgotten = ROW_COUNT;
	RETURN forgotten;
END
$$;
