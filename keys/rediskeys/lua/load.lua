-- Returns all keys if they changed. Those that the caller gives are put back where
-- they are newer: the server has lost them.
--
-- KEYS[1]  as in put.lua
-- ARGV     @rev that the caller knows, ms that it lives, a new @rev, the longest text,
--          then name, version and JSON of each key that the caller knows
-- returns  @rev, and unless it is the one that the caller knows names and texts;
--          what is too long for a key is taken out
local rev = redis.call('HGET', KEYS[1], '@rev')
if rev and #rev > 64 then -- it would go out with each answer
  rev = ARGV[3]
  redis.call('HSET', KEYS[1], '@rev', rev)
end
if rev and rev == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return { rev }
end
if #ARGV > 4 then
  for i = 5, #ARGV, 3 do
    local old = redis.call('HGET', KEYS[1], ARGV[i])
    local version = tonumber(string.match(old or '', '^(%d+) ') or '0')
    if version < tonumber(ARGV[i + 1]) then
      redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1] .. ' ' .. ARGV[i + 2])
    end
  end
  rev = ARGV[3]
  redis.call('HSET', KEYS[1], '@rev', rev)
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
local out = { rev or '' }
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if #all[i] > 1024 or #all[i + 1] > tonumber(ARGV[4]) then
    redis.call('HDEL', KEYS[1], all[i])
  elseif all[i] ~= '@rev' then
    out[#out + 1] = all[i]
    out[#out + 1] = all[i + 1]
  end
end
return out
