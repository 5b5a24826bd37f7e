-- Writes a key if nobody else has changed it, with its entry of the audit log.
--
-- KEYS[1]  hash of keys: name -> "<version> <JSON>"; @rev -> a word that changes
-- KEYS[2]  hash of the audit log: id -> JSON
-- ARGV     name, version it has to have ("0" = not there), new version, JSON ("" =
--          forget it), id of the entry ("" = none), its JSON, ms both live,
--          a new @rev, most entries
-- returns  1, or 0 where somebody else was faster
local old = redis.call('HGET', KEYS[1], ARGV[1])
local version = string.match(old or '', '^(%d+) ') or '0'
if ARGV[1] ~= '' and version ~= ARGV[2] then
  return 0
end
if ARGV[1] ~= '' then
  if ARGV[4] == '' then
    redis.call('HDEL', KEYS[1], ARGV[1])
  else
    redis.call('HSET', KEYS[1], ARGV[1], ARGV[3] .. ' ' .. ARGV[4])
  end
  redis.call('HSET', KEYS[1], '@rev', ARGV[8])
  redis.call('PEXPIRE', KEYS[1], ARGV[7])
end
if ARGV[5] ~= '' then
  redis.call('HSET', KEYS[2], ARGV[5], ARGV[6])
  local ids = redis.call('HKEYS', KEYS[2])
  if #ids > tonumber(ARGV[9]) then -- a tenth more at once, so that this is seldom
    table.sort(ids)
    for i = 1, #ids - math.floor(tonumber(ARGV[9]) * 0.9) do
      redis.call('HDEL', KEYS[2], ids[i])
    end
  end
  redis.call('PEXPIRE', KEYS[2], ARGV[7])
end
return 1
