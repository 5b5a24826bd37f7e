-- Has a job that runs end, and be the first that is looked at. KEYS: the job's hash, the
-- jobs that run, turns. ARGV: now (ms), job
local h = redis.call('HMGET', KEYS[1], 'status', 'owner')
if not h[1] then return 0 end
if h[1] == 'in_progress' then
  redis.call('HSET', KEYS[1], 'status', 'cancelling', 'asked', ARGV[1])
  redis.call('ZADD', KEYS[2], 'XX', 0, ARGV[2])
  redis.call('ZREM', KEYS[3], (h[2] or nobody) .. ARGV[2])
end
return 1
