-- Claims up to ARGV[3] lines for one replica until ARGV[2], and ends jobs that are
-- to go no further. Times are milliseconds since 1970. Where what is stored has all of
-- the room, or of an owner its half, no line is begun, and the reply has one word more if there are lines.
-- KEYS: sizes, ends, owners, sums, the jobs that run, turns; then, per job of ARGV[8…], its hash, its claims and its results.
-- ARGV: now, until, most, how long a finished job is kept (ms), the room (bytes), how long
-- the end of a job that is cancelled waits for what runs (ms), 1 if an owner has half of the room at most,
-- jobs as look.lua has them …
local active, turns = KEYS[5], KEYS[6]
local now, most, keep, space = tonumber(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
forget(ARGV[1])
sum()
local all = tonumber(redis.call('HGET', sums, 'all'))

-- rests reports whether no line of an owner is begun.
local function rests(mark)
  if all >= space then return true end
  return ARGV[7] == '1' and all >= space / 2 and tonumber(redis.call('HGET', sums, mark) or 0) >= space / 2
end

local out, left = {}, false
for i = 8, #ARGV do
  local id, at = string.sub(ARGV[i], 17), 7 + 3 * (i - 8)
  local job, claims = KEYS[at], KEYS[at + 1]
  local h = redis.call('HMGET', job, 'status', 'total', 'next', 'expires', 'asked', 'owner')
  local mark = h[6] or nobody
  local total, next, expires = tonumber(h[2]), tonumber(h[3]), tonumber(h[4])
  if h[1] ~= 'in_progress' and h[1] ~= 'cancelling' then -- it has expired, or is over by a build that knows no turns
    redis.call('ZREM', active, id)
    redis.call('ZREM', turns, ARGV[i])
  elseif h[1] == 'cancelling' or now >= expires then
    local waited = h[1] == 'cancelling' and now - tonumber(h[5] or now) >= tonumber(ARGV[6])
    if waited or redis.call('ZCOUNT', claims, '(' .. ARGV[1], '+inf') == 0 then
      local status = 'cancelled'
      if h[1] ~= 'cancelling' then status = 'expired' end
      redis.call('HSET', job, 'status', status, 'ended', ARGV[1])
      redis.call('ZREM', active, id)
      redis.call('ZREM', turns, mark .. id)
      redis.call('ZADD', ends, 'XX', now + keep, id)
      outlive(ARGV[1], { sizes, ends, owners })
      for k = 0, 2 do redis.call('PEXPIRE', KEYS[at + k], keep) end
    end
  else
    if ARGV[i] ~= mark .. id and redis.call('ZADD', turns, 0, mark .. id) == 1 then outlive(ARGV[1], { turns }) end
    if rests(mark) then
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
