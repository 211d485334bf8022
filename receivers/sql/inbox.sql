CREATE TABLE IF NOT EXISTS public.inbox_process (
	receiver text   NOT NULL,
	process  text   NOT NULL,
	epoch    bigint NOT NULL,
	sequence bigint NOT NULL,
	PRIMARY KEY (receiver, process)
) WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS public.inbox (
	receiver    text        NOT NULL,
	process     text        NOT NULL,
	dedup_key   text        NOT NULL,
	received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (receiver, process, dedup_key)
);

CREATE INDEX IF NOT EXISTS inbox_received_at ON public.inbox (receiver, received_at);

-- inbox_receive decides about a message of a receiver: its process, epoch, sequence and dedup key. Call it in the
-- transaction of the effect, which has to be READ COMMITTED. It notes what it decides, and locks the row of the process
-- until the transaction ends.
--
--   apply       apply the record, then commit; number is its sequence
--   duplicate   the record was applied: do nothing, commit, and answer 200
--   stale       another worker has taken over: do nothing, and answer 409; number is the largest epoch
--   gap         a record is missing: do nothing, and answer 428; number is the largest sequence that was applied.
--               Only if the last argument is true
CREATE OR REPLACE FUNCTION public.inbox_receive(text, text, bigint, bigint, text, boolean DEFAULT false)
RETURNS TABLE (outcome text, number bigint)
LANGUAGE plpgsql AS $$
DECLARE
	seen public.inbox_process;
BEGIN
	INSERT INTO public.inbox_process AS p (receiver, process, epoch, sequence)
	VALUES ($1, $2, $3, 0)
	ON CONFLICT (receiver, process) DO UPDATE SET epoch = greatest(p.epoch, excluded.epoch)
	RETURNING p.* INTO seen;
	IF $3 < seen.epoch THEN
		RETURN QUERY SELECT 'stale', seen.epoch;
		RETURN;
	END IF;
	PERFORM FROM public.inbox WHERE receiver = $1 AND process = $2 AND dedup_key = $5;
	IF FOUND THEN
		RETURN QUERY SELECT 'duplicate', $4;
		RETURN;
	END IF;
	IF $6 AND seen.sequence > 0 AND $4 > seen.sequence + 1 THEN
		RETURN QUERY SELECT 'gap', seen.sequence;
		RETURN;
	END IF;
	INSERT INTO public.inbox (receiver, process, dedup_key) VALUES ($1, $2, $5);
	UPDATE public.inbox_process SET sequence = greatest(sequence, $4) WHERE receiver = $1 AND process = $2;
	RETURN QUERY SELECT 'apply', $4;
END
$$;
