-- Adds a file if there is room, after it has dropped from the count what expired.
-- KEYS: sizes, ends, the file's head, its content, its owner's files.
-- ARGV: id, now (ms), end (ms), bytes, most bytes, most files and jobs, head, content,
-- the mark of its owner, 1 if that has half of the room at most
local entry = ARGV[9] .. ARGV[1]
forget(KEYS[1], KEYS[2], ARGV[2])
local free = room(KEYS[1], ARGV[9], ARGV[10], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]))
if free ~= 1 then return free end
redis.call('HSET', KEYS[1], entry, ARGV[4])
redis.call('ZADD', KEYS[2], ARGV[3], entry)
local left = tonumber(ARGV[3]) - tonumber(ARGV[2])
redis.call('SET', KEYS[3], ARGV[7], 'PX', left)
redis.call('SET', KEYS[4], ARGV[8], 'PX', left)
redis.call('ZADD', KEYS[5], ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYRANK', KEYS[5], 0, -tonumber(ARGV[6]) - 1)
outlive(KEYS[2], ARGV[2], { KEYS[1], KEYS[2], KEYS[5] })
return 1
