-- What came of the lines of a job, until some bytes are there.
-- KEYS: its results. ARGV: the first line, how many at most, the bytes
local all, size = {}, 0
local first = tonumber(ARGV[1])
for line = first, first + ARGV[2] - 1 do
  local result = redis.call('HGET', KEYS[1], string.format('%d', line))
  all[#all + 1] = result
  if result then size = size + #result end
  if size >= tonumber(ARGV[3]) then break end
end
return all
