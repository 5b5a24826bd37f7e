-- Writes what one replica runs and returns what the others run.
--
-- KEYS[1]  hash: replica -> "<ms of the server's clock> <load>"
-- ARGV     replica, its load, expiry in ms, life of the whole hash in ms
-- returns  replica, load, its age in ms, replica ... of the others that are alive,
--          of the first 1,000 that are found
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local expiry = tonumber(ARGV[3])

redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now) .. ' ' .. ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[4])

local others = {}
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if all[i] ~= ARGV[1] then
    local at, load = string.match(all[i + 1], '^(%d+) (.*)$')
    -- A time ahead of the clock is one from before the clock was set back. No
    -- gateway writes a megabyte.
    if at and #load < 2 ^ 20 and math.abs(now - tonumber(at)) <= expiry then
      if #others < 3000 then
        others[#others + 1] = all[i]
        others[#others + 1] = load
        others[#others + 1] = string.format('%.0f', math.max(now - tonumber(at), 0))
      end
    else
      redis.call('HDEL', KEYS[1], all[i])
    end
  end
end
return others
