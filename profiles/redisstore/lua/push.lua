-- Adds the delta of one replica to the sums of one target, once.
--
-- KEYS[1]  hash of the sums: @v, @birth, @updated, @seed, and one field a sum
-- KEYS[2]  hash of the replica: model -> number of the last delta added
-- ARGV[1]  version of the layout
-- ARGV[2]  model
-- ARGV[3]  number of this delta
-- ARGV[4]  life of KEYS[1] in ms
-- ARGV[5]  life of KEYS[2] in ms
-- ARGV[6]  @birth for a hash that is made now
-- ARGV[7]  @updated of the delta, '0' for none
-- then, for each group of sums: the factor that its older content keeps, the
-- number of its sums, and for each the name and the value
-- returns  'ok', @birth and 'added' or 'known', or 'version' and the version found
local found = redis.call('HMGET', KEYS[1], '@v', '@birth', '@updated')
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
  local i = 8
  while ARGV[i] do
    local keep, count = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
    local names, sums = {}, {}
    for n = 1, count do
      names[n] = ARGV[i + 2 * n]
    end
    local older = redis.call('HMGET', KEYS[1], unpack(names))
    for n = 1, count do
      local sum = keep * tonumber(older[n] or '0') + tonumber(ARGV[i + 1 + 2 * n])
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
