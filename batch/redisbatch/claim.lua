-- Claims up to ARGV[3] lines for one replica until ARGV[2], and ends jobs that are
-- to go no further. Times are milliseconds since 1970.
-- KEYS: the jobs that run; then, per job of ARGV[5…], its hash and its claims.
-- ARGV: now, until, most, how long a finished job is kept (ms), ids …
local now, till, most, keep = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local out = {}
for i = 5, #ARGV do
  local id, job, claims = ARGV[i], KEYS[2 + 3 * (i - 5)], KEYS[3 + 3 * (i - 5)]
  local h = redis.call('HMGET', job, 'status', 'total', 'next', 'done', 'expires')
  if not h[1] then
    redis.call('ZREM', KEYS[1], id)
  else
    local total, next, done, expires = tonumber(h[2]), tonumber(h[3]), tonumber(h[4]), tonumber(h[5])
    local over = now >= expires
    if h[1] == 'cancelling' or over then
      if redis.call('ZCOUNT', claims, '(' .. ARGV[1], '+inf') == 0 then
        local status = 'cancelled'
        if h[1] ~= 'cancelling' then status = 'expired' end
        redis.call('HSET', job, 'status', status, 'ended', ARGV[1])
        redis.call('ZREM', KEYS[1], id)
        for k = 2, 4 do redis.call('PEXPIRE', KEYS[k + 3 * (i - 5)], keep) end
      end
    else
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
      redis.call('PEXPIRE', claims, expires - now + tonumber(keep))
    end
  end
  if #out / 2 >= most then break end
end
return out
