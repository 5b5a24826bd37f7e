-- Adds a job if there is room, after it has dropped from the count what expired.
-- KEYS: sizes, ends, the job's hash, the jobs that run, its owner's jobs.
-- ARGV: id, now (ms), the end of its window (ms), bytes, most bytes, most files and jobs, how long it is kept (ms),
-- status, lines, head, how many of an owner are listed, the mark of its owner, 1 if that has half of the room at most
local entry = ARGV[12] .. ARGV[1]
forget(KEYS[1], KEYS[2], ARGV[2])
local free = room(KEYS[1], ARGV[12], ARGV[13], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]))
if free ~= 1 then return free end
local left = math.max(tonumber(ARGV[3]) - tonumber(ARGV[2]), 0) + tonumber(ARGV[7])
redis.call('HSET', KEYS[1], entry, ARGV[4])
redis.call('ZADD', KEYS[2], tonumber(ARGV[2]) + left, entry)
redis.call('HSET', KEYS[3], 'job', ARGV[10], 'status', ARGV[8], 'total', ARGV[9], 'next', 0, 'done', 0, 'completed', 0, 'failed', 0, 'expires', ARGV[3], 'owner', ARGV[12])
redis.call('PEXPIRE', KEYS[3], left)
if ARGV[8] == 'in_progress' then
  redis.call('ZADD', KEYS[4], ARGV[2], ARGV[1])
else
  redis.call('HSET', KEYS[3], 'ended', ARGV[2])
end
redis.call('ZADD', KEYS[5], ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[5], 0, -tonumber(ARGV[11]) - 1)
outlive(KEYS[2], ARGV[2], { KEYS[1], KEYS[2], KEYS[4], KEYS[5] })
return 1
