-- Adds what one replica has spent of one budget, once, and says what it may spend of
-- what is left. All of these allowances together are never more than what is left.
--
-- Money is in billionths of a dollar; sums stay exact up to nine million dollars.
-- What no gateway can have written is replaced: the name of the key has the
-- version of this script.
--
-- Each replica gets what its requests need that run, and the next one, and an even share
-- of the rest. Where that is more than is left, nobody has a rest: who asks gets what the
-- next request needs, if nobody else holds it, and else gives back what it does not need.
-- So what is left is not held in crumbs that serve nobody. Who has spent something lets
-- another one ask first that waits. One that holds all that is left is told so.
--
-- A store that has lost everything is begun anew by the first replica that comes.
-- What each replica has spent is kept apart, and every replica knows all of these
-- parts: it brings them once to each beginning, and each part is at least the largest
-- that anybody brings. So the sum is what it was, whoever comes first and whoever was
-- killed. Until as many replicas have come as there were, nobody gets more than it held
-- before: the others hold theirs. The same holds when nobody could reach the store.
--
-- KEYS[1]  hash: total -> money; replica -> "<ms> <seq> <allowance>";
--          @begun -> "<ms> <µs> 0", the second one is when; @replica -> "<ms> <money> 0",
--          its part; !replica -> "<ms> <money> <money>", the most
--          that one of its requests may cost, and what it needs; @back -> "<ms> <ms> 0",
--          the second one is when replicas came back that could not reach the store. The
--          first number of these four is an hour ago: versions that do not know them take
--          them for replicas that are silent. Those leave @begun out when they begin anew;
--          then there are no parts.
-- KEYS[2]  hash: what replicas have left that have been silent for a day, so that
--          KEYS[1] stays short: replica -> number of its last report, @replica -> its
--          part. It is read for who is new or comes back, and for who brings parts.
-- ARGV     replica, number of its report, spent since the last one that arrived,
--          total as the replica knows it, limit, ms after which a silent replica
--          holds nothing, ms that the hash lives, what the replica may spend
--          while no answer comes, when the hash was begun as the replica knows it, how many
--          replicas there are as it knows, what its requests need that run, what the next
--          one needs, 1 if it could not reach the store before, 1 if it ends, ms for which
--          others may take to come back, the most that one of its requests may cost, 1 if it
--          brings parts and else 0, then for each part: replica, money
-- returns  total, allowance, 1 if the replica has to bring its parts (nothing is
--          written then, and the rest says nothing), when it was begun, the parts,
--          if anything has changed, 1 if nobody else holds any of the rest, the most that
--          a request may cost as the others know it
local quiet, hour, day, most_left, first_part = 1000, 3600000, 86400000, 10000, 18
local longest = 128 -- of a name and of a text
local clock = redis.call('TIME')
local ms = clock[1] * 1000 + math.floor(clock[2] / 1000)
local all = redis.pcall('HGETALL', KEYS[1])
if all.err then -- not a hash
  redis.call('PEXPIRE', KEYS[1], 0)
  all = {}
end
local me, seq, new, known, limit = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local expiry, life, holds, replicas = tonumber(ARGV[6]), ARGV[7], tonumber(ARGV[8]), tonumber(ARGV[10])
local reserved, want, cut_off, ends, return_grace = tonumber(ARGV[11]), tonumber(ARGV[12]), ARGV[13] == '1', ARGV[14] == '1', tonumber(ARGV[15])
local expect, brings = tonumber(ARGV[16]), ARGV[17] == '1'
local total, begun, last, seen, back = nil, nil, 0, false, nil
local parts, needs, others, others_expect = {}, {}, {}, 0
local function left_behind(command, ...)
  local reply = redis.pcall(command, KEYS[2], ...)
  if type(reply) == 'table' and reply.err then -- not a hash
    redis.call('PEXPIRE', KEYS[2], 0)
    reply = redis.call(command, KEYS[2], ...)
  end
  return reply
end
for i = 1, #all, 2 do
  local name, text = all[i], all[i + 1]
  if #name > longest or #text > longest then -- it would go out with each answer
    redis.call('HDEL', KEYS[1], name)
  elseif name == 'total' then
    total = tonumber(text)
  else
    local at, second, third = string.match(text, '^(%d+) (%d+) (%d+)$')
    local silent = at and math.abs(ms - tonumber(at)) or 2 * day
    local mark = string.sub(name, 1, 1)
    if name == '@begun' and at then
      begun = second
    elseif name == '@back' and at then
      back = tonumber(second)
    elseif silent > day then
      redis.call('HDEL', KEYS[1], name)
      if at and second ~= '0' and mark ~= '!' and #left_behind('HKEYS') < most_left then
        left_behind('HSET', name, second)
        redis.call('PEXPIRE', KEYS[2], life)
      end
    elseif mark == '@' then
      parts[string.sub(name, 2)] = tonumber(second)
    elseif mark == '!' then
      needs[string.sub(name, 2)] = tonumber(third)
      if name ~= '!' .. me then
        others_expect = math.max(others_expect, tonumber(second))
      end
    elseif name == me then
      last, seen = tonumber(second), true
    else
      others[name] = { silent = silent, seq = second, allowance = tonumber(third) or 0 }
    end
  end
end
if not (total and total == total and total >= 0) then
  total, begun, parts = nil, nil, {}
end
if known > 0 and not brings and (total == nil or begun and begun ~= ARGV[9]) then
  return { '0', '0', 1, '', {}, 0, '0' }
end
if not seen or brings then
  local behind = left_behind('HGETALL')
  for i = 1, #behind, 2 do
    local name, of = behind[i], tonumber(behind[i + 1]) or 0
    if #name > longest then
      left_behind('HDEL', name)
    elseif name == me then
      last = math.max(last, of)
    elseif string.sub(name, 1, 1) == '@' then
      parts[string.sub(name, 2)] = math.max(parts[string.sub(name, 2)] or 0, of)
    end
  end
end

-- What was spent.
local heard = total
local function keep(name, part)
  parts[name] = part
  redis.call('HSET', KEYS[1], '@' .. name, string.format('%.0f %.0f 0', ms - hour, part))
end
if total == nil then
  total, begun = 0, string.format('%.0f', clock[1] * 1000000 + clock[2])
  redis.call('HSET', KEYS[1], '@begun', string.format('%.0f %s 0', ms - hour, begun))
  for i = first_part, #ARGV, 2 do
    keep(ARGV[i], math.max(tonumber(ARGV[i + 1]), parts[ARGV[i]] or 0))
  end
  for _, part in pairs(parts) do
    total = total + part
  end
  total = math.max(total, known)
elseif begun then
  for i = first_part, #ARGV, 2 do
    local more = tonumber(ARGV[i + 1]) - (parts[ARGV[i]] or 0)
    if more > 0 then
      total = total + more
      keep(ARGV[i], tonumber(ARGV[i + 1]))
    end
  end
else
  total = math.max(total, known)
end
if seq > last then
  total = total + new
  last = seq
  if begun then
    keep(me, (parts[me] or 0) + new)
  end
end

-- What of the rest is whose. Who is silent may be one that cannot reach the store, for as
-- long after all could not as they may take to come back.
if cut_off then
  back = ms
  redis.call('HSET', KEYS[1], '@back', string.format('%.0f %.0f 0', ms - hour, ms))
end
if back and math.abs(ms - back) <= return_grace then
  expiry = math.huge
end
local alive, held, stuck, needed, waits = 1, 0, 0, reserved + want, false
for name, other in pairs(others) do
  if other.silent > quiet and other.silent <= expiry then -- it gives nothing back
    held, stuck = held + other.allowance, stuck + other.allowance
    alive = alive + 1
  elseif other.silent <= expiry then
    local need = needs[name] or 0
    alive, held, needed = alive + 1, held + other.allowance, needed + need
    waits = waits or need > other.allowance
  elseif other.allowance > 0 then -- it holds nothing any more, also when others come back
    redis.call('HSET', KEYS[1], name, string.format('%.0f %s 0', ms - other.silent, other.seq))
  end
end
local left = math.max(limit - total, 0)
local free, all_came = left - held, true
if begun and math.abs(ms - tonumber(begun) / 1000) <= return_grace and alive < replicas then
  alive, all_came = replicas, false
end
local mine
if ends then
  mine = reserved
elseif not all_came and (known > 0 or ARGV[9] ~= '') then -- it was told before what it holds
  mine = holds
elseif needed <= left - stuck then
  mine = reserved + want + math.floor((left - stuck - needed) / alive)
elseif not all_came then
  mine = math.floor(left / alive)
elseif waits and new > 0 then
  mine = reserved
elseif free >= reserved + want then
  mine = reserved + want
elseif held == 0 then
  mine = free
else
  mine = reserved
end
mine = math.max(math.min(mine, free), 0)
local record = math.max(mine, holds)
if ends then
  record = mine
end
redis.call('HSET', KEYS[1], 'total', string.format('%.0f', total), me, string.format('%.0f %.0f %.0f', ms, last, record))
if reserved + want + expect > 0 then
  redis.call('HSET', KEYS[1], '!' .. me, string.format('%.0f %.0f %.0f', ms - hour, expect, ends and 0 or reserved + want))
end
redis.call('PEXPIRE', KEYS[1], life)
local told = {}
if begun and (not seen or heard ~= known or begun ~= ARGV[9] or new > 0) then
  for name, part in pairs(parts) do
    told[#told + 1] = name
    told[#told + 1] = string.format('%.0f', part)
  end
end
local whole = 0
if all_came and held == 0 and mine == left then
  whole = 1
end
return { string.format('%.0f', total), string.format('%.0f', mine), 0, begun or '', told, whole, string.format('%.0f', others_expect) }
