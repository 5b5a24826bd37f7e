-- What the scripts behind it share. Of all that is stored there are sizes, a hash (entry → bytes), and
-- ends, a sorted set (entry by its end, ms). An entry is the mark of its owner, 16 bytes, and its id.

-- forget drops from the count what has expired.
local function forget(sizes, ends, now)
  for _, entry in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', now, 'LIMIT', 0, 1000)) do
    redis.call('HDEL', sizes, entry)
    redis.call('ZREM', ends, entry)
  end
end

-- used returns the bytes of all entries, and those of each owner, whose entries are counted in number.
local function used(sizes)
  local all, own, number = 0, {}, {}
  local list = redis.call('HGETALL', sizes)
  for i = 1, #list, 2 do
    local owner, bytes = string.sub(list[i], 1, 16), tonumber(list[i + 1])
    all = all + bytes
    own[owner] = (own[owner] or 0) + bytes
    number[owner] = (number[owner] or 0) + 1
  end
  return all, own, number
end

-- room returns 1 if owner may add bytes, 0 where nobody may, and -1 where half ('1' = others share the
-- room) is taken by owner. most and many are the room, in bytes and in entries.
local function room(sizes, owner, half, bytes, most, many)
  local all, own, number = used(sizes)
  if half == '1' and ((own[owner] or 0) + bytes > most / 2 or (number[owner] or 0) >= many / 2) then return -1 end
  if all + bytes > most or redis.call('HLEN', sizes) >= many then return 0 end
  return 1
end

-- outlive has keys live as long as the last entry, and a second more.
local function outlive(ends, now, keys)
  local last = redis.call('ZREVRANGE', ends, 0, 0, 'WITHSCORES')[2]
  if not last then return end
  for _, key in ipairs(keys) do redis.call('PEXPIRE', key, math.max(tonumber(last) - tonumber(now), 0) + 1000) end
end

