-- Adds a file if there is room, after it has dropped from the count what expired.
-- KEYS: sizes, ends, owners, sums, the file's head, its content, its owner's files.
-- ARGV: id, now (ms), end (ms), bytes, most bytes, most files and jobs, head, content,
-- the mark of its owner, 1 if that has half of the room at most
local id, now, mark, many = ARGV[1], ARGV[2], ARGV[9], tonumber(ARGV[6])
forget(now)
local free = room(mark, ARGV[10], tonumber(ARGV[4]), tonumber(ARGV[5]), many)
if free ~= 1 then return free end
grow(id, mark, ARGV[4], 1)
redis.call('HSET', owners, id, mark)
redis.call('ZADD', ends, ARGV[3], id)
local left = tonumber(ARGV[3]) - tonumber(now)
redis.call('SET', KEYS[5], ARGV[7], 'PX', left)
redis.call('SET', KEYS[6], ARGV[8], 'PX', left)
redis.call('ZADD', KEYS[7], now, id)
redis.call('ZREMRANGEBYRANK', KEYS[7], 0, -many - 1)
outlive(now, { sizes, ends, owners, KEYS[7] })
return 1
