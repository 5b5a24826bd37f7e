-- Claims up to ARGV[3] lines for one replica until ARGV[2], and ends jobs that are
-- to go no further. Times are milliseconds since 1970. Where what is stored has all of
-- the room, or of an owner its half, no line is begun, and the reply has one word more if there are lines.
-- KEYS: the jobs that run, sizes, ends; then, per
-- job of ARGV[8…], its hash, its claims and its results.
-- ARGV: now, until, most, how long a finished job is kept (ms), the room (bytes), how long
-- the end of a job that is cancelled waits for what runs (ms), 1 if an owner has half of the room at most, ids …
local now, most, keep = tonumber(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[4])
forget(KEYS[2], KEYS[3], ARGV[1])
local space, sum, own = tonumber(ARGV[5]), 0, {}
for _, n in ipairs(redis.call('HVALS', KEYS[2])) do sum = sum + tonumber(n) end
if ARGV[7] == '1' and sum >= space / 2 then sum, own = used(KEYS[2]) end -- else nobody has half
local full, left = sum >= space, false
local out = {}
for i = 8, #ARGV do
  local id, at = ARGV[i], 4 + 3 * (i - 8)
  local job, claims = KEYS[at], KEYS[at + 1]
  local h = redis.call('HMGET', job, 'status', 'total', 'next', 'expires', 'asked', 'owner')
  if not h[1] then
    redis.call('ZREM', KEYS[1], id)
  else
    local total, next, expires = tonumber(h[2]), tonumber(h[3]), tonumber(h[4])
    if h[1] == 'cancelling' or now >= expires then
      local waited = h[1] == 'cancelling' and now - tonumber(h[5] or now) >= tonumber(ARGV[6])
      if waited or redis.call('ZCOUNT', claims, '(' .. ARGV[1], '+inf') == 0 then
        local status = 'cancelled'
        if h[1] ~= 'cancelling' then status = 'expired' end
        redis.call('HSET', job, 'status', status, 'ended', ARGV[1])
        redis.call('ZREM', KEYS[1], id)
        redis.call('ZADD', KEYS[3], 'XX', now + keep, (h[6] or '') .. id)
        outlive(KEYS[3], ARGV[1], { KEYS[2], KEYS[3] })
        for k = 0, 2 do redis.call('PEXPIRE', KEYS[at + k], keep) end
      end
    elseif full or (own[h[6]] or 0) >= space / 2 then
      left = true
    elseif #out / 2 < most then
      local old = redis.call('ZRANGEBYSCORE', claims, '-inf', ARGV[1], 'LIMIT', 0, most - #out / 2)
      for _, line in ipairs(old) do
        redis.call('ZADD', claims, ARGV[2], line)
        out[#out + 1] = id
        out[#out + 1] = line
      end
      while #out / 2 < most and next < total do
        redis.call('ZADD', claims, ARGV[2], next)
        out[#out + 1] = id
        out[#out + 1] = tostring(next)
        next = next + 1
      end
      redis.call('HSET', job, 'next', next)
      redis.call('PEXPIRE', claims, expires - now + keep)
    end
  end
end
if left then out[#out + 1] = 'full' end
return out
