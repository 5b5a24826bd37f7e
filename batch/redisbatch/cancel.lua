-- Has a job that runs end, and be the first that is looked at. KEYS: the job's hash, the
-- jobs that run. ARGV: now (ms), job
local status = redis.call('HGET', KEYS[1], 'status')
if not status then return 0 end
if status == 'in_progress' then
  redis.call('HSET', KEYS[1], 'status', 'cancelling', 'asked', ARGV[1])
  redis.call('ZADD', KEYS[2], 'XX', 0, ARGV[2])
end
return 1
