-- Holds the claims of one job until ARGV[2]; returns 0 if the job runs no more, or has no time left.
-- KEYS: the job's hash, its claims. ARGV: now (ms), until (ms), lines …
local h = redis.call('HMGET', KEYS[1], 'status', 'expires')
if h[1] ~= 'in_progress' or tonumber(ARGV[1]) >= tonumber(h[2]) then return 0 end
for i = 3, #ARGV do
  redis.call('ZADD', KEYS[2], 'XX', ARGV[2], ARGV[i])
end
return 1
