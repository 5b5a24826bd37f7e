-- Adds what one replica has used of the limits of one key, once, and returns
-- what all have used.
--
-- A bucket is kept as the time at which all of it will be paid for (GCRA's
-- theoretical arrival time), in microseconds of this server's clock.
--
-- What no replica can have written is replaced by what this one knows: the name
-- of the key has the version of this script, so nobody else writes there.
--
-- KEYS[1]  hash: requests, tokens -> that time; replica -> "<ms> <seq> <running>"
-- ARGV     replica, number of its report, how many requests it runs, ms after
--          which a silent replica runs none, then for requests and for tokens:
--          size per minute (0 = no limit), what was used, and the total to
--          begin with where this server knows none
-- returns  totals of requests and tokens, how many requests the others run,
--          and what was replaced, '' for nothing
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local minute, hour = 60e6, 3600e6
local keep = 600000 -- ms: how long a report that was not answered may be sent again
local most = 100000 -- requests that one replica runs of one key, and reports it is ahead by
local replaced = ''

local mine = redis.pcall('HGET', KEYS[1], ARGV[1])
if type(mine) == 'table' then -- an error: not a hash
  replaced = 'no hash'
  redis.call('PEXPIRE', KEYS[1], 0) -- as DEL does, which the user of CONFIG.md may not
  mine = nil
end
local last, told = string.match(mine or '', '^%d+ (%d+) (%d+)$')
if mine and (not last or tonumber(last) > ARGV[2] + most) then -- it would keep this replica out
  replaced = ARGV[1]
  last, told = nil, nil
end
local fresh = tonumber(last or '0') < tonumber(ARGV[2])
-- Who only asks writes nothing: a key that nobody uses is forgotten.
local tells = tonumber(ARGV[3]) > 0 or tonumber(told or '0') > 0 or replaced ~= ''

-- paid is the stored time at which a bucket is paid for, nil where there is none
-- or none that can be: nobody ever owes more than an hour, and what was paid for
-- longer ago than a key lives is gone. A clock that was set back looks the same.
local function paid(name)
  local text = redis.call('HGET', KEYS[1], name)
  local t = tonumber(text or '')
  if t and t >= now - 2 * hour and t <= now + hour + minute then
    return t
  end
  if text then
    replaced, tells = name .. ' = ' .. string.sub(text, 1, 40), true
  end
end

local totals, life, changes = {}, keep, {}
for i, name in ipairs({ 'requests', 'tokens' }) do
  local size, new, known = tonumber(ARGV[3 * i + 2]), tonumber(ARGV[3 * i + 3]), tonumber(ARGV[3 * i + 4])
  totals[i] = '0'
  if size > 0 then
    local owed = math.min(math.max((paid(name) or now + known * minute / size) - now, 0), hour)
    if fresh and new ~= 0 then
      owed = math.min(math.max(owed + new * minute / size, 0), hour)
      tells = true
    end
    changes[#changes + 1] = name
    changes[#changes + 1] = string.format('%.0f', now + owed)
    totals[i] = string.format('%.17g', owed * size / minute)
    life = math.max(life, owed / 1000 + 60000)
  end
end

local ms = math.floor(now / 1000)
if tells then
  redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f %s %s', ms, ARGV[2], ARGV[3]), unpack(changes))
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', life))
end

local running = 0
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local at, n = string.match(all[i + 1], '^(%d+) %d+ (%d+)$')
  n = tonumber(n or '')
  if at and n <= most then
    if all[i] ~= ARGV[1] then
      local age = math.abs(ms - tonumber(at))
      if age <= tonumber(ARGV[4]) then
        running = running + n
      elseif age > keep then
        redis.call('HDEL', KEYS[1], all[i])
      end
    end
  elseif all[i] ~= 'requests' and all[i] ~= 'tokens' then
    replaced = string.sub(all[i] .. ' = ' .. all[i + 1], 1, 40)
    redis.call('HDEL', KEYS[1], all[i])
  end
end
return { totals[1], totals[2], running, replaced }
