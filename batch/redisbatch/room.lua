-- What the scripts behind it share. Of all that is stored there are sizes (hash: id → bytes), ends (sorted: id by
-- end, ms) and owners (hash: id → the mark of its owner, 16 bytes). A build that knows no owners keeps the first two.
-- sums (hash) is what they add up to: the bytes of all (all), those of an owner (MARK), and its entries (MARK:n).
-- It lives for a second and is then added up anew, as such a build does not keep it.
local sizes, ends, owners, sums = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

-- shrink drops id from the count, and what it takes from the sums.
local function shrink(id)
  local bytes, mark = redis.call('HGET', sizes, id), redis.call('HGET', owners, id)
  redis.call('HDEL', sizes, id)
  redis.call('HDEL', owners, id)
  redis.call('ZREM', ends, id)
  if not bytes or redis.call('HEXISTS', sums, 'all') == 0 then return end
  redis.call('HINCRBY', sums, 'all', 0 - bytes) -- of 0 this is 0, and no -0, which is no integer to Redis
  if not mark then return end
  redis.call('HINCRBY', sums, mark, 0 - bytes)
  if redis.call('HINCRBY', sums, mark .. ':n', -1) <= 0 then redis.call('HDEL', sums, mark, mark .. ':n') end
end

-- forget drops from the count what has expired.
local function forget(now)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', ends, '-inf', now, 'LIMIT', 0, 1000)) do shrink(id) end
end

-- sum adds up, unless that was done within a second. It also drops owners of what is gone.
local function sum()
  if redis.call('HEXISTS', sums, 'all') == 1 then return end
  local all, own, number, marks = 0, {}, {}, {}
  local list = redis.call('HGETALL', owners)
  for i = 1, #list, 2 do marks[list[i]] = list[i + 1] end
  list = redis.call('HGETALL', sizes)
  for i = 1, #list, 2 do
    local mark, bytes = marks[list[i]], tonumber(list[i + 1])
    all = all + bytes
    if mark then
      own[mark] = (own[mark] or 0) + bytes
      number[mark] = (number[mark] or 0) + 1
      marks[list[i]] = nil
    end
  end
  for id in pairs(marks) do redis.call('HDEL', owners, id) end
  redis.call('HSET', sums, 'all', all)
  for mark, bytes in pairs(own) do redis.call('HSET', sums, mark, bytes, mark .. ':n', number[mark]) end
  redis.call('PEXPIRE', sums, 1000)
end

-- grow adds bytes to what id takes, and 1 entry if it is new.
local function grow(id, mark, bytes, entries)
  redis.call('HINCRBY', sizes, id, bytes)
  if redis.call('HEXISTS', sums, 'all') == 0 then return end
  redis.call('HINCRBY', sums, 'all', bytes)
  redis.call('HINCRBY', sums, mark, bytes)
  redis.call('HINCRBY', sums, mark .. ':n', entries)
end

-- room returns 1 if an owner may add bytes, 0 where nobody may, and -1 where half ('1' = others share the
-- room) is taken by it. most and many are the room, in bytes and in entries.
local function room(mark, half, bytes, most, many)
  sum()
  local h = redis.call('HMGET', sums, 'all', mark, mark .. ':n')
  local all, own, number = tonumber(h[1]), tonumber(h[2] or 0), tonumber(h[3] or 0)
  if half == '1' and (own + bytes > most / 2 or number >= many / 2) then return -1 end
  if all + bytes > most or redis.call('HLEN', sizes) >= many then return 0 end
  return 1
end

-- outlive has keys live as long as the last entry, and a second more.
local function outlive(now, keys)
  local last = redis.call('ZREVRANGE', ends, 0, 0, 'WITHSCORES')[2]
  if not last then return end
  for _, key in ipairs(keys) do redis.call('PEXPIRE', key, math.max(tonumber(last) - tonumber(now), 0) + 1000) end
end

