-- Drops the sums of one target that no replica can have written, unless
-- somebody else has done so since they were read.
--
-- KEYS[1]  hash of the sums
-- ARGV[1]  version of the layout
-- ARGV[2]  @birth as it was read, '' for none
-- returns  1, or 0 where other sums are there
if redis.call('HGET', KEYS[1], '@v') ~= ARGV[1] or (redis.call('HGET', KEYS[1], '@birth') or '') ~= ARGV[2] then
  return 0
end
redis.call('PEXPIRE', KEYS[1], 0) -- as DEL does, which the user of CONFIG.md may not
return 1
