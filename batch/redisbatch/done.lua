-- Writes down what came of a line, unless it was written already.
-- KEYS: the jobs that run, the job's hash, its claims, its results, sizes, ends (see room.lua).
-- ARGV: job, line, now (ms), 1 if it counts as completed, the result, how long a finished job is kept (ms)
local h = redis.call('HMGET', KEYS[2], 'status', 'total', 'expires', 'owner')
if not h[1] then return 0 end
local entry = (h[4] or '') .. ARGV[1]
redis.call('ZREM', KEYS[3], ARGV[2])
if h[1] ~= 'in_progress' and h[1] ~= 'cancelling' then return 1 end
if redis.call('HSETNX', KEYS[4], ARGV[2], ARGV[5]) == 1 then
  if ARGV[4] == '1' then redis.call('HINCRBY', KEYS[2], 'completed', 1) else redis.call('HINCRBY', KEYS[2], 'failed', 1) end
  if redis.call('HEXISTS', KEYS[5], entry) == 1 then redis.call('HINCRBY', KEYS[5], entry, #ARGV[5]) end
  local done = redis.call('HINCRBY', KEYS[2], 'done', 1)
  redis.call('PEXPIRE', KEYS[4], math.max(tonumber(h[3]) - tonumber(ARGV[3]), 0) + tonumber(ARGV[6]))
  if done == tonumber(h[2]) then
    redis.call('HSET', KEYS[2], 'status', 'completed', 'ended', ARGV[3])
    redis.call('ZREM', KEYS[1], ARGV[1])
    redis.call('ZADD', KEYS[6], 'XX', tonumber(ARGV[3]) + tonumber(ARGV[6]), entry)
    redis.call('PEXPIRE', KEYS[2], ARGV[6])
  end
end
return 1
