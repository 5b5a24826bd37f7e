-- Cuts what no replica can have written so far that a reader is done with it in time
-- and finds it. A reader calls it after a read that failed.
--
-- KEYS[1]  hash of the sums
-- ARGV[1]  version of the layout
-- ARGV[2]  the longest value
-- ARGV[3]  most fields
-- returns  how many were cut
local v = redis.call('HGET', KEYS[1], '@v')
if v and v ~= ARGV[1] and #v <= tonumber(ARGV[2]) then
  return 0 -- another version's
end
local all, cut = redis.call('HGETALL', KEYS[1]), 0
local birth = redis.call('HGET', KEYS[1], '@birth') or ''
if #all > 2 * tonumber(ARGV[3]) or #birth > tonumber(ARGV[2]) then -- cut, the birth would be another one
  redis.call('PEXPIRE', KEYS[1], 0) -- it is put back by those who know it
  return #all / 2
end
for i = 1, #all, 2 do
  if #all[i] > tonumber(ARGV[2]) then
    redis.call('HDEL', KEYS[1], all[i])
    cut = cut + 1
  elseif #all[i + 1] > tonumber(ARGV[2]) then
    redis.call('HSET', KEYS[1], all[i], string.sub(all[i + 1], 1, ARGV[2]))
    cut = cut + 1
  end
end
return cut
