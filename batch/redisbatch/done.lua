-- Writes down what came of a line, unless it was written already.
-- KEYS: sizes, ends, owners, sums, the jobs that run, turns, the job's hash, its claims, its results.
-- ARGV: job, line, now (ms), 1 if it counts as completed, the result, how long a finished job is kept (ms)
local id, job = ARGV[1], KEYS[7]
local h = redis.call('HMGET', job, 'status', 'total', 'expires', 'owner')
if not h[1] then return 0 end
local mark = h[4] or nobody
redis.call('ZREM', KEYS[8], ARGV[2])
if h[1] ~= 'in_progress' and h[1] ~= 'cancelling' then return 1 end
if redis.call('HSETNX', KEYS[9], ARGV[2], ARGV[5]) == 1 then
  if ARGV[4] == '1' then redis.call('HINCRBY', job, 'completed', 1) else redis.call('HINCRBY', job, 'failed', 1) end
  if redis.call('HEXISTS', sizes, id) == 1 then grow(id, mark, #ARGV[5], 0) end
  local done = redis.call('HINCRBY', job, 'done', 1)
  redis.call('PEXPIRE', KEYS[9], math.max(tonumber(h[3]) - tonumber(ARGV[3]), 0) + tonumber(ARGV[6]))
  if done == tonumber(h[2]) then
    redis.call('HSET', job, 'status', 'completed', 'ended', ARGV[3])
    redis.call('ZREM', KEYS[5], id)
    redis.call('ZREM', KEYS[6], mark .. id)
    redis.call('ZADD', ends, 'XX', tonumber(ARGV[3]) + tonumber(ARGV[6]), id)
    redis.call('PEXPIRE', job, ARGV[6])
  end
end
return 1
