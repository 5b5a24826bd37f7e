-- Returns jobs to look at, each behind the mark of its owner. Those that are to be cancelled come first. Of the others
-- that run it takes one of each owner, then a second one of each, and so on. A few more are taken at random: so jobs are
-- found that a build added which knows no turns. Its cost grows with how many it returns, and not with how many run.
-- KEYS: the jobs that run; turns, a sorted set in which each has the score 0 and stands behind the mark of its owner.
-- ARGV: the most of the first kind, and of the second; the most of the third; a seed
local active, turns, most = KEYS[1], KEYS[2], tonumber(ARGV[1])
math.randomseed(tonumber(ARGV[3]))
local out = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', active, '-inf', 0, 'LIMIT', 0, most)) do out[#out + 1] = nobody .. id end

-- first returns the first job from here on, or of all.
local function first(from)
  return redis.call('ZRANGEBYLEX', turns, from, '+', 'LIMIT', 0, 1)[1] or redis.call('ZRANGEBYLEX', turns, '-', '+', 'LIMIT', 0, 1)[1]
end

local list, seen = {}, {} -- of owners, in any order
local job = first('[' .. string.format('%04x', math.random(0, 65535)))
while job and #list < most and not seen[string.sub(job, 1, 16)] do
  local mark = string.sub(job, 1, 16)
  seen[mark] = true
  local n = redis.call('ZLEXCOUNT', turns, '[' .. mark, '(' .. mark .. '\255')
  table.insert(list, math.random(#list + 1), { first = redis.call('ZRANK', turns, job), jobs = n, from = math.random(n) })
  job = first('[' .. mark .. '\255')
end
local turn, left, more = 0, most, true
while more and left > 0 do
  more = false
  for _, o in ipairs(list) do
    if turn < o.jobs and left > 0 then
      local at = o.first + (o.from + turn) % o.jobs
      out[#out + 1] = redis.call('ZRANGE', turns, at, at)[1]
      left, more = left - 1, true
    end
  end
  turn = turn + 1
end

local all = redis.call('ZCOUNT', active, '-inf', '+inf')
for _ = 1, math.min(all, tonumber(ARGV[2])) do
  local at = math.random(0, all - 1)
  out[#out + 1] = nobody .. redis.call('ZRANGE', active, at, at)[1]
end
return out
