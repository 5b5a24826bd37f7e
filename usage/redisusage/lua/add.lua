-- Adds cells of usage to those of all replicas, once.
--
-- KEYS[1]  hash: @birth -> a random name, replica -> number of its last batch
-- KEYS[2…] hashes of an hour each: names as JSON -> six sums, blank between;
--          @cells -> how many there are, @cells and a key -> how many of that one,
--          which has half of the most; what is without a key has all
-- ARGV     replica, number of the batch, a name for @birth, ms that hours live,
--          most cells of an hour, then for each cell: index of its hour in KEYS,
--          names, names where the hour is full, six numbers
-- returns  @birth
local made = redis.pcall('HSETNX', KEYS[1], '@birth', ARGV[3])
if type(made) == 'table' then -- not a hash: PEXPIRE does as DEL does
  redis.call('PEXPIRE', KEYS[1], 0)
  redis.call('HSETNX', KEYS[1], '@birth', ARGV[3])
end
local birth = redis.call('HGET', KEYS[1], '@birth')
if #birth > 64 then -- it would go out with each answer
  birth = ARGV[3]
  redis.call('HSET', KEYS[1], '@birth', birth)
end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
if tonumber(ARGV[2]) <= tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0') then
  return birth
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
for i = 6, #ARGV, 9 do
  local hour = KEYS[tonumber(ARGV[i])]
  local name = ARGV[i + 1]
  local old = redis.pcall('HGET', hour, name)
  if type(old) == 'table' then
    redis.call('PEXPIRE', hour, 0)
    old = false
  end
  if not old then
    local count = tonumber(redis.call('HGET', hour, '@cells') or '0')
    local key = tostring(cjson.decode(name)[1])
    local own = '@cells ' .. key
    local has = tonumber(redis.call('HGET', hour, own) or '0') or 0
    if count >= tonumber(ARGV[5]) or key ~= '' and has >= tonumber(ARGV[5]) / 2 then
      name = ARGV[i + 2]
      old = redis.call('HGET', hour, name)
    else
      redis.call('HSET', hour, '@cells', count + 1, own, has + 1)
    end
  end
  local sums, k = {}, 1
  for word in string.gmatch(old or '', '%S+') do
    sums[k] = tonumber(word) or 0
    k = k + 1
  end
  for j = 1, 6 do
    sums[j] = string.format('%.0f', (sums[j] or 0) + tonumber(ARGV[i + 2 + j]))
  end
  redis.call('HSET', hour, name, table.concat(sums, ' ', 1, 6))
  redis.call('PEXPIRE', hour, ARGV[4])
end
return birth
