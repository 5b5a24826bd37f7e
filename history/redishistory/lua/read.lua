-- Reads fields of a hash, and of what no gateway can have written not a byte: its
-- reader would not be done with it in time, and would take the server for gone.
--
-- KEYS[1]  hash
-- ARGV     the longest value, most bytes in all, then the fields; none = all
-- returns  the value of each field, or without fields: field, value, field … A value
--          that is too long is taken out, and empty; what is beyond the bytes in all is left out.
local longest, most = tonumber(ARGV[1]), tonumber(ARGV[2])
local out, bytes = {}, 0
local function fitting(field, value)
  if value and #value > longest then
    redis.call('HDEL', KEYS[1], field) -- here, for what takes long is answered too late
    return ''
  end
  bytes = bytes + (value and #value or 0)
  return value
end
if #ARGV > 2 then
  for i, value in ipairs(redis.call('HMGET', KEYS[1], unpack(ARGV, 3))) do
    value = fitting(ARGV[i + 2], value)
    out[i] = bytes <= most and value
  end
  return out
end
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if #all[i] > 64 then -- no replica has such a name
    redis.call('HDEL', KEYS[1], all[i])
  else
    local value = fitting(all[i], all[i + 1])
    bytes = bytes + #all[i]
    if bytes > most then
      break
    end
    out[#out + 1] = all[i]
    out[#out + 1] = value
  end
end
return out
