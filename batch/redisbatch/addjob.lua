-- Adds a job if there is room, after it has dropped from the count what expired.
-- KEYS: sizes, ends, owners, sums, the job's hash, the jobs that run, turns (see look.lua), its owner's jobs.
-- ARGV: id, now (ms), the end of its window (ms), bytes, most bytes, most files and jobs, how long it is kept (ms),
-- status, lines, head, how many of an owner are listed, the mark of its owner, 1 if that has half of the room at most
local id, now, mark = ARGV[1], ARGV[2], ARGV[12]
forget(now)
local free = room(mark, ARGV[13], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]))
if free ~= 1 then return free end
local left = math.max(tonumber(ARGV[3]) - tonumber(now), 0) + tonumber(ARGV[7])
grow(id, mark, ARGV[4], 1)
redis.call('HSET', owners, id, mark)
redis.call('ZADD', ends, tonumber(now) + left, id)
redis.call('HSET', KEYS[5], 'job', ARGV[10], 'status', ARGV[8], 'total', ARGV[9], 'next', 0, 'done', 0, 'completed', 0, 'failed', 0, 'expires', ARGV[3], 'owner', mark)
redis.call('PEXPIRE', KEYS[5], left)
if ARGV[8] == 'in_progress' then
  redis.call('ZADD', KEYS[6], now, id)
  redis.call('ZADD', KEYS[7], 0, mark .. id)
else
  redis.call('HSET', KEYS[5], 'ended', now)
end
redis.call('ZADD', KEYS[8], now, id)
redis.call('ZREMRANGEBYRANK', KEYS[8], 0, -tonumber(ARGV[11]) - 1)
outlive(now, { sizes, ends, owners, KEYS[6], KEYS[7], KEYS[8] })
return 1
