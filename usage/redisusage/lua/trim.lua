-- Takes out what no replica can have written, so that a reader is done with it in time.
-- A reader calls it after a read that failed.
--
-- KEYS[1]  hash of an hour, as in add.lua
-- ARGV     the longest name, the longest value, most fields
-- returns  how much was taken out
local all, cut = redis.pcall('HGETALL', KEYS[1]), 0
if all.err then -- not a hash
  return 0
end
if #all > 2 * tonumber(ARGV[3]) then
  redis.call('PEXPIRE', KEYS[1], 0)
  return #all / 2
end
for i = 1, #all, 2 do
  if #all[i] > tonumber(ARGV[1]) or #all[i + 1] > tonumber(ARGV[2]) then
    redis.call('HDEL', KEYS[1], all[i])
    cut = cut + 1
  end
end
return cut
