-- Has a job that runs end. KEYS: the job's hash. ARGV: now (ms)
local status = redis.call('HGET', KEYS[1], 'status')
if not status then return 0 end
if status == 'in_progress' then redis.call('HSET', KEYS[1], 'status', 'cancelling', 'asked', ARGV[1]) end
return 1
