-- Adds what one replica has spent of one budget, once, and divides what is left
-- among the replicas.
--
-- Money is in billionths of a dollar; sums stay exact up to nine million dollars.
-- What no gateway can have written is replaced: the name of the key has the
-- version of this script.
--
-- A store that has lost everything is begun anew by the first replica that comes.
-- What each replica has spent is kept apart, and every replica knows all of these
-- parts: it brings them once to each beginning, and each part is at least the largest
-- that anybody brings. So the sum is what it was, whoever comes first and whoever was
-- killed. For one expiry after that nobody gets more than it held before: the others
-- may not have come yet, and hold theirs.
--
-- KEYS[1]  hash: total -> money; replica -> "<ms> <seq> <allowance>";
--          @begun -> "<ms> <µs> 0", the second one is when; @replica -> "<ms> <money> 0",
--          its part. The first number of these is an hour ago: versions that know
--          neither take them for replicas that are silent. Those leave @begun out
--          when they begin anew; then there are no parts.
-- KEYS[2]  hash: what replicas have left that have been silent for a day, so that
--          KEYS[1] stays short: replica -> number of its last report, @replica -> its
--          part. It is read for who is new or comes back, and for who brings parts.
-- ARGV     replica, number of its report, spent since the last one that arrived,
--          total as the replica knows it, limit, ms after which a silent replica
--          holds no allowance, ms that the hash lives, what the replica may spend
--          while no answer comes (an older version does not say), when the hash was
--          begun as the replica knows it, how many replicas there are as it knows,
--          1 if it brings parts and else 0, then for each part: replica, money
-- returns  total, allowance, 1 if the replica has to bring its parts (nothing is
--          written then, and the rest says nothing), when it was begun, the parts,
--          if anything has changed
local hour, day, most_left = 3600000, 86400000, 10000
local clock = redis.call('TIME')
local ms = clock[1] * 1000 + math.floor(clock[2] / 1000)
local all = redis.pcall('HGETALL', KEYS[1])
if all.err then -- not a hash
  redis.call('PEXPIRE', KEYS[1], 0)
  all = {}
end
local me, known, expiry = ARGV[1], tonumber(ARGV[4]), tonumber(ARGV[6])
local total, begun, last, held, alive, seen = nil, nil, 0, 0, 1, false
local parts = {}
local function left(command, ...)
  local reply = redis.pcall(command, KEYS[2], ...)
  if type(reply) == 'table' and reply.err then -- not a hash
    redis.call('PEXPIRE', KEYS[2], 0)
    reply = redis.call(command, KEYS[2], ...)
  end
  return reply
end
for i = 1, #all, 2 do
  local name, text = all[i], all[i + 1]
  if name == 'total' then
    total = tonumber(text)
  else
    local at, second, allowance = string.match(text, '^(%d+) (%d+) (%d+)$')
    local silent = at and math.abs(ms - tonumber(at)) or 2 * day
    if name == '@begun' and at then
      begun = second
    elseif silent > day then
      redis.call('HDEL', KEYS[1], name)
      if at and second ~= '0' and left('HLEN') < most_left then
        left('HSET', name, second)
        redis.call('PEXPIRE', KEYS[2], ARGV[7])
      end
    elseif string.sub(name, 1, 1) == '@' then
      parts[string.sub(name, 2)] = tonumber(second)
    elseif name == me then
      last, seen = tonumber(second), true
    elseif silent <= expiry then
      alive = alive + 1
      held = held + tonumber(allowance)
    end
  end
end
if not (total and total == total and total >= 0) then
  total, begun, parts = nil, nil, {}
end
if known > 0 and ARGV[11] == '0' and (total == nil or begun and begun ~= ARGV[9]) then
  return { '0', '0', 1, '', {} }
end
if not seen or ARGV[11] == '1' then
  local all = left('HGETALL')
  for i = 1, #all, 2 do
    local name, of = all[i], tonumber(all[i + 1]) or 0
    if name == me then
      last = math.max(last, of)
    elseif string.sub(name, 1, 1) == '@' then
      parts[string.sub(name, 2)] = math.max(parts[string.sub(name, 2)] or 0, of)
    end
  end
end
local heard = total
local function keep(name, part)
  parts[name] = part
  redis.call('HSET', KEYS[1], '@' .. name, string.format('%.0f %.0f 0', ms - hour, part))
end
if total == nil then
  total, begun = 0, string.format('%.0f', clock[1] * 1000000 + clock[2])
  redis.call('HSET', KEYS[1], '@begun', string.format('%.0f %s 0', ms - hour, begun))
  for i = 12, #ARGV, 2 do
    keep(ARGV[i], math.max(tonumber(ARGV[i + 1]), parts[ARGV[i]] or 0))
  end
  for _, part in pairs(parts) do
    total = total + part
  end
  total = math.max(total, known)
elseif begun then
  for i = 12, #ARGV, 2 do
    local more = tonumber(ARGV[i + 1]) - (parts[ARGV[i]] or 0)
    if more > 0 then
      total = total + more
      keep(ARGV[i], tonumber(ARGV[i + 1]))
    end
  end
else
  total = math.max(total, known)
end
if tonumber(ARGV[2]) > last then
  total = total + tonumber(ARGV[3])
  last = tonumber(ARGV[2])
  if begun then
    keep(me, (parts[me] or 0) + tonumber(ARGV[3]))
  end
end
local left = math.max(tonumber(ARGV[5]) - total, 0)
local most = left
if begun and math.abs(ms - tonumber(begun) / 1000) <= expiry then
  alive = math.max(alive, tonumber(ARGV[10]))
  if known > 0 then
    most = tonumber(ARGV[8])
  end
end
local mine = math.max(math.min(math.floor(left / alive), left - held, most), 0)
redis.call('HSET', KEYS[1], 'total', string.format('%.0f', total), me, string.format('%.0f %.0f %.0f', ms, last, math.max(mine, tonumber(ARGV[8]))))
redis.call('PEXPIRE', KEYS[1], ARGV[7])
local told = {}
if begun and (not seen or heard ~= known or begun ~= ARGV[9] or ARGV[3] ~= '0') then
  for name, part in pairs(parts) do
    told[#told + 1] = name
    told[#told + 1] = string.format('%.0f', part)
  end
end
return { string.format('%.0f', total), string.format('%.0f', mine), 0, begun or '', told }
