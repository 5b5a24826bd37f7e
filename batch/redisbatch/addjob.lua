-- Adds a job if there is room, after it has dropped from the count what expired.
-- KEYS: sizes (hash: id → bytes), ends (sorted: id by end), the job's hash, the jobs that run, its owner's jobs.
-- ARGV: id, now (ms), the end of its window (ms), bytes, most bytes, most files and jobs, how long it is kept (ms),
-- status, lines, head, how many of an owner are listed
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[2], 'LIMIT', 0, 1000)) do
  redis.call('HDEL', KEYS[1], id)
  redis.call('ZREM', KEYS[2], id)
end
if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[6]) then return 0 end
local used = 0
for _, n in ipairs(redis.call('HVALS', KEYS[1])) do used = used + tonumber(n) end
if used + tonumber(ARGV[4]) > tonumber(ARGV[5]) then return 0 end
local left = math.max(tonumber(ARGV[3]) - tonumber(ARGV[2]), 0) + tonumber(ARGV[7])
redis.call('HSET', KEYS[1], ARGV[1], ARGV[4])
redis.call('ZADD', KEYS[2], tonumber(ARGV[2]) + left, ARGV[1])
redis.call('HSET', KEYS[3], 'job', ARGV[10], 'status', ARGV[8], 'total', ARGV[9], 'next', 0, 'done', 0, 'completed', 0, 'failed', 0, 'expires', ARGV[3])
redis.call('PEXPIRE', KEYS[3], left)
if ARGV[8] == 'in_progress' then
  redis.call('ZADD', KEYS[4], ARGV[2], ARGV[1])
else
  redis.call('HSET', KEYS[3], 'ended', ARGV[2])
end
redis.call('ZADD', KEYS[5], ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[5], 0, -tonumber(ARGV[11]) - 1)
redis.call('PEXPIRE', KEYS[5], left)
return 1
