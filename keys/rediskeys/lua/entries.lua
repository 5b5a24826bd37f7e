-- Returns the entries of the audit log. What is longer than any is taken out.
--
-- KEYS[1]  hash of the audit log, as in put.lua
-- ARGV     the longest entry
-- returns  texts
local out, all = {}, redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if #all[i] > 64 or #all[i + 1] > tonumber(ARGV[1]) then
    redis.call('HDEL', KEYS[1], all[i])
  else
    out[#out + 1] = all[i + 1]
  end
end
return out
