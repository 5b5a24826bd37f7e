-- Puts sums of one target there: what the server has lost, once, or what was learned
-- elsewhere.
--
-- KEYS[1]  hash of the sums
-- ARGV[1]  version of the layout
-- ARGV[2]  @birth for a hash that is made now
-- ARGV[3]  life in ms
-- ARGV[4]  @updated of what is put back, '0' for none
-- ARGV[5]  @shifts of it
-- ARGV[6]  'lost': it is put back, unless another replica has done so; 'keep': it is put
--          there unless the target has sums; 'replace': in place of those
-- then name and value of each sum
-- returns  'ok' and the whole hash, or 'kept', or 'version' and the version found
local found = redis.call('HMGET', KEYS[1], '@v', '@seed', '@updated')
if found[1] == ARGV[1] and ARGV[6] == 'keep' then
  return { 'kept' }
end
if found[1] == ARGV[1] and ARGV[6] == 'replace' then
  redis.call('PEXPIRE', KEYS[1], 0) -- as DEL does, which the user of CONFIG.md may not
  found = {}
end
if found[1] ~= ARGV[1] then
  if redis.call('EXISTS', KEYS[1]) == 1 then
    return { 'version', found[1] or '' }
  end
  redis.call('HSET', KEYS[1], '@v', ARGV[1], '@birth', ARGV[2])
end
if not found[2] then
  for i = 7, #ARGV, 2 do
    local sum = tonumber(redis.call('HGET', KEYS[1], ARGV[i]) or '0') + tonumber(ARGV[i + 1])
    redis.call('HSET', KEYS[1], ARGV[i], string.format('%.17g', sum))
  end
  if tonumber(ARGV[4]) > tonumber(found[3] or '0') then
    redis.call('HSET', KEYS[1], '@updated', ARGV[4])
  end
  redis.call('HSET', KEYS[1], '@seed', ARGV[2], '@shifts', ARGV[5])
  local time = redis.call('TIME')
  redis.call('HSETNX', KEYS[1], '@slow', string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000)))
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
return { 'ok', unpack(redis.call('HGETALL', KEYS[1])) }
