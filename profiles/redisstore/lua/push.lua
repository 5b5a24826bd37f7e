-- Adds the delta of one replica to the sums of one target, once.
--
-- KEYS[1]  hash of the sums: @v, @birth, @updated, @seed, @slow, and one field a sum
-- KEYS[2]  hash of the replica: model -> number of the last delta added
-- ARGV[1]  version of the layout
-- ARGV[2]  model
-- ARGV[3]  number of this delta
-- ARGV[4]  life of KEYS[1] in ms
-- ARGV[5]  life of KEYS[2] in ms
-- ARGV[6]  @birth for a hash that is made now
-- ARGV[7]  @updated of the delta, '0' for none
-- ARGV[8]  ms in which the slow copy (the sums s0.… to s99.…) halves by the clock of this server
-- ARGV[9]  the factor that it keeps besides
-- then, for each group of sums: the factor that its older content keeps, the
-- number of its sums, and for each the name and the value
-- returns  'ok', @birth and 'added' or 'known', or 'version' and the version found

-- finite is a stored sum, or 0 where it is beyond all sums: added to, it would
-- never heal. What is no number at all is an error.
local function finite(text)
  if text == '-nan' then
    return 0
  end
  local x = tonumber(text or '0')
  if x ~= x or x > 1e30 or x < -1e30 then
    return 0
  end
  return x
end

local found = redis.call('HMGET', KEYS[1], '@v', '@birth', '@updated', '@slow')
local birth = found[2]
if found[1] ~= ARGV[1] then
  if redis.call('EXISTS', KEYS[1]) == 1 then
    return { 'version', found[1] or '' }
  end
  birth = ARGV[6]
  redis.call('HSET', KEYS[1], '@v', ARGV[1], '@birth', birth)
end

local result = 'known'
local last = redis.call('HGET', KEYS[2], ARGV[2])
if not last or tonumber(last) < tonumber(ARGV[3]) then
  -- Once a minute is often enough for what halves in a day: it touches every
  -- sum of the slow copy.
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local elapsed = now - tonumber(found[4] or '0')
  local left = tonumber(ARGV[9])
  if not found[4] or elapsed < 0 then -- none yet, or a clock that was set back
    redis.call('HSET', KEYS[1], '@slow', string.format('%d', now))
  elseif elapsed >= 60000 then
    left = left * 2 ^ (-elapsed / tonumber(ARGV[8]))
    redis.call('HSET', KEYS[1], '@slow', string.format('%d', now))
  end
  if left < 1 then
    for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
      if string.find(name, '^s%d+%.') then
        local sum = left * finite(redis.call('HGET', KEYS[1], name))
        redis.call('HSET', KEYS[1], name, string.format('%.17g', sum))
      end
    end
  end
  local i = 10
  while ARGV[i] do
    local keep, count = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
    local names, sums = {}, {}
    for n = 1, count do
      names[n] = ARGV[i + 2 * n]
    end
    local older = redis.call('HMGET', KEYS[1], unpack(names))
    for n = 1, count do
      local sum = keep * finite(older[n]) + tonumber(ARGV[i + 1 + 2 * n])
      sums[2 * n - 1] = names[n]
      sums[2 * n] = string.format('%.17g', sum)
    end
    redis.call('HSET', KEYS[1], unpack(sums))
    i = i + 2 + 2 * count
  end
  if tonumber(ARGV[7]) > tonumber(found[3] or '0') then
    redis.call('HSET', KEYS[1], '@updated', ARGV[7])
  end
  redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
  result = 'added'
end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[5])
return { 'ok', birth, result }
