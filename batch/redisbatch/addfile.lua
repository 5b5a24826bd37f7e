-- Adds a file if there is room, after it has dropped from the count what expired.
-- KEYS: sizes (hash: id → bytes), ends (sorted: id by end), the file's head, its content, its owner's files.
-- ARGV: id, now (ms), end (ms), bytes, most bytes, most files and jobs, head, content
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', ARGV[2], 'LIMIT', 0, 1000)) do
  redis.call('HDEL', KEYS[1], id)
  redis.call('ZREM', KEYS[2], id)
end
if redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[6]) then return 0 end
local used = 0
for _, n in ipairs(redis.call('HVALS', KEYS[1])) do used = used + tonumber(n) end
if used + tonumber(ARGV[4]) > tonumber(ARGV[5]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[4])
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
local left = tonumber(ARGV[3]) - tonumber(ARGV[2])
redis.call('SET', KEYS[3], ARGV[7], 'PX', left)
redis.call('SET', KEYS[4], ARGV[8], 'PX', left)
redis.call('ZADD', KEYS[5], ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[5], left)
return 1
