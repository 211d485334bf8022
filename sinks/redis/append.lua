-- Append a record of ordered-dispatcher to a stream, unless it is there, comes too early, or is of a superseded worker.
-- All of it or nothing happens, and no other command in between.
--
-- KEYS  1 the state of the process, 2 the marks of its last records, 3 the stream
-- ARGV  1 process, 2 epoch, 3 worker, 4 sequence, 5 mark of the record, 6 sequence that must be there, 7 kind,
--       8 the last mark to keep, 9 max_len or 0, 10… names and values of the entry
--
-- kind: first (of the process), next (to what the sink knows to be there), chained (to the one before it in the
-- pipeline), replay (of a dead letter, out of its turn)
--
-- Numbers have up to 19 digits, and Lua's have 15: they are compared as text.

local function less(a, b) return #a < #b or #a == #b and a < b end

local state = redis.call('HMGET', KEYS[1], 'process', 'epoch', 'worker', 'sequence', 'stream', 'lost', 'why')
local process, epoch, worker, sequence, stream, lost, why = unpack(state)
local kind = ARGV[7]

-- The fence.
if epoch and less(ARGV[2], epoch) then
	return {'superseded', epoch}
end
if epoch == ARGV[2] and worker ~= '' and ARGV[3] ~= '' and worker ~= ARGV[3] then
	return {'claimed', epoch}
end

-- Redis may know nothing of the process because it refused the first record. That is no loss.
if kind == 'chained' and not process then
	return {'early', ''}
end

-- What was acknowledged may be gone. That is said until an operator has decided, which begins an epoch. A replay begins
-- one without that, so it notes nothing, and leaves the loss for the next record to find.
-- The stream of the last entry need not be this record's. If the user has lost the right to another one, nobody knows.
local look = stream == KEYS[3] and redis.call or redis.pcall
if not lost or lost == '' then
	lost, why = false, false
	if not process and kind ~= 'first' then
		why = 'state'
	elseif stream and look('EXISTS', stream) == 0 then
		why = 'stream'
	elseif kind == 'next' and sequence and less(sequence, ARGV[6]) then
		why = 'back'
	end
	if why and kind ~= 'replay' then
		redis.call('HSET', KEYS[1], 'process', ARGV[1], 'lost', ARGV[2], 'why', why)
	end
	lost = why and ARGV[2]
end
if lost and not less(lost, ARGV[2]) then
	return {'lost', why}
end

-- A number that is there already is this very record's, or two databases use the same numbers.
if kind == 'replay' or sequence and not less(sequence, ARGV[4]) then
	if redis.call('LPOS', KEYS[2], ARGV[5]) then
		if epoch and epoch ~= ARGV[2] then
			redis.call('HSET', KEYS[1], 'epoch', ARGV[2], 'worker', ARGV[3])
		end
		return {'taken', ''}
	end
	if kind ~= 'replay' then
		return {'another', sequence}
	end
end
if kind == 'chained' and sequence ~= ARGV[6] then
	return {'early', ''}
end

-- These two change nothing that counts. They fail where Redis is full, the user lacks a right or a key has another type,
-- before the entry is there. HSET is the first one: Redis looks at the memory only before the first write of a script.
redis.call('HSET', KEYS[1], 'process', ARGV[1])
redis.call('LTRIM', KEYS[2], 0, ARGV[8])
local id
if ARGV[9] == '0' then
	id = redis.pcall('XADD', KEYS[3], '*', unpack(ARGV, 10))
else
	id = redis.pcall('XADD', KEYS[3], 'MAXLEN', '~', ARGV[9], '*', unpack(ARGV, 10))
end
if type(id) == 'table' then
	if string.find(id.err, '^WRONGTYPE') then
		return {'type', ''}
	end
	return id
end
redis.call('LPUSH', KEYS[2], ARGV[5])
if kind ~= 'replay' then
	redis.call('HSET', KEYS[1], 'epoch', ARGV[2], 'worker', ARGV[3], 'sequence', ARGV[4], 'stream', KEYS[3], 'id', id, 'lost', '')
elseif epoch then
	redis.call('HSET', KEYS[1], 'epoch', ARGV[2], 'worker', ARGV[3])
end
return {'appended', id}
