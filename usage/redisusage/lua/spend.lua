-- Adds what one replica has spent of one budget, once, and divides what is left
-- among the replicas.
--
-- Money is in billionths of a dollar; sums stay exact up to nine million dollars.
-- What no gateway can have written is replaced: the name of the key has the
-- version of this script.
--
-- KEYS[1]  hash: total -> money; replica -> "<ms> <seq> <allowance>"
-- ARGV     replica, number of its report, spent since the last one that arrived,
--          total as the replica knows it, limit, ms after which a silent replica
--          holds no allowance, ms that the hash lives, and what the replica may spend
--          while no answer comes (an older version does not say)
-- returns  total, allowance, whether it was begun anew
local clock = redis.call('TIME')
local ms = clock[1] * 1000 + math.floor(clock[2] / 1000)
local all = redis.pcall('HGETALL', KEYS[1])
if all.err then -- not a hash
  redis.call('PEXPIRE', KEYS[1], 0)
  all = {}
end
local total, last, held, alive = nil, 0, 0, 1
local expiry = tonumber(ARGV[6])
for i = 1, #all, 2 do
  local name, text = all[i], all[i + 1]
  if name == 'total' then
    total = tonumber(text)
  else
    local at, seq, allowance = string.match(text, '^(%d+) (%d+) (%d+)$')
    if not at then
      redis.call('HDEL', KEYS[1], name)
    elseif name == ARGV[1] then
      last = tonumber(seq)
    elseif math.abs(ms - tonumber(at)) <= expiry then
      alive = alive + 1
      held = held + tonumber(allowance)
    elseif math.abs(ms - tonumber(at)) > 86400000 then
      redis.call('HDEL', KEYS[1], name)
    end
  end
end
local anew = total == nil or total ~= total or total < 0
-- A total only grows within a period: who knows of more knows what was lost.
total = math.max(anew and 0 or total, tonumber(ARGV[4]))
if tonumber(ARGV[2]) > last then
  total = total + tonumber(ARGV[3])
  last = tonumber(ARGV[2])
end
local left = math.max(tonumber(ARGV[5]) - total, 0)
local mine = math.max(math.min(math.floor(left / alive), left - held), 0)
redis.call('HSET', KEYS[1], 'total', string.format('%.0f', total), ARGV[1], string.format('%.0f %.0f %.0f', ms, last, math.max(mine, tonumber(ARGV[8] or '0'))))
redis.call('PEXPIRE', KEYS[1], ARGV[7])
return { string.format('%.0f', total), string.format('%.0f', mine), anew and 1 or 0 }
