-- Adds the delta of one replica to the sums of one target, once. Before it stand
-- the rules of profiles.Rules, as the tables rules, by kind of group, and tops,
-- the highest n of each bin.
--
-- KEYS[1]  hash of the sums: @v, @birth, @updated, @seed, @slow, @shifts, and one field a sum
-- KEYS[2]  hash of the replica: model -> number of the last delta added
-- ARGV[1]  version of the layout
-- ARGV[2]  model
-- ARGV[3]  number of this delta
-- ARGV[4]  life of KEYS[1] in ms
-- ARGV[5]  life of KEYS[2] in ms
-- ARGV[6]  @birth for a hash that is made now
-- ARGV[7]  @updated of the delta, '0' for none
-- ARGV[8]  ms in which the slow copy (the sums s0.… to s99.…) halves by the clock of this server
-- ARGV[9]  @shifts of sums that the delta's shift is for; those of any other are not shifted
-- ARGV[10] @shifts after it
-- ARGV[11] what is added to the sum g.ln then
-- ARGV[12] how many kinds of sums it multiplies, and for each the name without
--          the number of a bin, and the factor; 0 = the delta shifts nothing
-- then, for each group of sums: the factor that its older content keeps, the
-- number of its sums, and for each the name and the value
-- returns  'ok', @birth and 'added' or 'known'; 'version' and the version found;
--          'refused', the name and the value of a sum that cannot be: nothing
--          was added. What cannot be and was there already is dropped, with all
--          sums of the target: the 4th part of 'ok' names it, '' for none.

-- number is a stored number, nil where there is something else.
local function number(text)
  local x = tonumber(text)
  if x and x >= -1e30 and x <= 1e30 then
    return x
  end
end

local abs = math.abs

-- wrong is the index of a sum among v that breaks a rule, nil when all hold. lo
-- and hi are the levels of concurrency that the group is about.
local function wrong(list, lo, hi, v)
  for i = 1, #list do
    local r = list[i]
    local x, of, ok = v[r[1]], v[r[2]] or 1, nil
    if r[7] then
      ok = x * x <= of * v[r[7]] * (1 + 1e-6) + 1e-6
    else
      local least, most, slack = r[3], r[4], r[6] + 1e-6 * abs(x)
      if r[5] > 0 then
        least, most = least * (least < 0 and hi or lo) ^ r[5], most * hi ^ r[5]
      end
      ok = least * of - slack <= x and x <= most * of + slack
    end
    if not ok then
      return r[1]
    end
  end
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- What the replica said last. A number that it cannot have reached would keep
-- it out for as long as the key lives.
local last = redis.pcall('HGET', KEYS[2], ARGV[2])
if type(last) == 'table' then -- an error: not a hash, under a name that is this replica's own
  redis.call('PEXPIRE', KEYS[2], 0)
  last = nil
end
last = number(last or nil)
if last and last > ARGV[3] + 1000 then
  last = nil
end

-- Everything is read and worked out before anything is written.
local found = redis.call('HMGET', KEYS[1], '@v', '@birth', '@updated', '@slow', '@shifts')
if found[1] ~= ARGV[1] and redis.call('EXISTS', KEYS[1]) == 1 then
  return { 'version', found[1] or '' }
end
if last and last >= tonumber(ARGV[3]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  redis.call('PEXPIRE', KEYS[2], ARGV[5])
  return { 'ok', found[2] or '', 'known' }
end

local fresh = not found[1]
local elapsed = number(found[4]) and now - found[4]
local left = 1
-- Once a minute is often enough for what halves in a day: it touches every sum
-- of the slow copy. No stamp is none yet; one ahead is a clock that was set back.
local stamp = not elapsed or elapsed < 0 or elapsed >= 60000
if elapsed and elapsed >= 60000 then
  left = 2 ^ (-elapsed / ARGV[8])
end

local kinds = tonumber(ARGV[12])
local shifted = {} -- name -> sum as the delta's shift makes it
-- shift works them out; it reports whether the delta shifts anything.
local function shift()
  shifted = {}
  if kinds == 0 or (found[5] or '0') ~= ARGV[9] then
    return false
  end
  local factors = {}
  for i = 13, 12 + 2 * kinds, 2 do
    factors[ARGV[i]] = tonumber(ARGV[i + 1])
  end
  local all = fresh and {} or redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    local factor = factors[(string.gsub(all[i], '^(%a+)%d+%.', '%1.'))]
    local sum = factor and number(all[i + 1])
    if sum then
      shifted[all[i]] = factor * sum
    elseif all[i] == 'g.ln' then
      shifted['g.ln'] = number(all[i + 1])
    end
  end
  shifted['g.ln'] = (shifted['g.ln'] or 0) + ARGV[11]
  return true
end

local changed = {} -- name -> sum
-- add works out the sums. It returns the name and the value of one that cannot
-- be, if there is one, and whether it was there before.
local function add()
  changed = {}
  local i = 13 + 2 * kinds
  while ARGV[i] do
    local keep, count = tonumber(ARGV[i]), tonumber(ARGV[i + 1])
    local names, older, sums = {}, {}, {}
    for n = 1, count do
      names[n] = ARGV[i + 2 * n]
    end
    if not fresh then
      older = redis.call('HMGET', KEYS[1], unpack(names))
    end
    local kind, bin = string.match(names[1], '^(%a+)(%d*)%.')
    local list, lo, hi = rules[kind] or {}, 1, tops[#tops]
    if kind == 'b' then
      lo, hi = (tops[tonumber(bin)] or 0) + 1, tops[bin + 1] or hi
    elseif kind == 's' then
      keep = keep * left
    end
    for n = 1, count do
      local text, new = older[n] or '0', number(ARGV[i + 1 + 2 * n])
      older[n] = number(text) and (shifted[names[n]] or number(text))
      if not older[n] or not new then
        return names[n], new and text or ARGV[i + 1 + 2 * n], new
      end
      sums[n] = keep * older[n] + new
    end
    local bad = not fresh and wrong(list, lo, hi, older)
    if bad then
      return names[bad], older[bad], true
    end
    bad = wrong(list, lo, hi, sums)
    if not bad then
      for n = 1, count do
        changed[names[n]] = sums[n]
      end
    elseif not fresh then
      return names[bad], sums[bad], false
    end
    -- Into an empty hash a group may take back what was lost with the one
    -- before: that group is left out.
    i = i + 2 + 2 * count
  end
end

local moved = shift()
local dropped = ''
local name, value, before = add()
if name and before then
  redis.call('PEXPIRE', KEYS[1], 0) -- as DEL does, which the user of CONFIG.md may not
  dropped = name .. ' = ' .. string.sub(tostring(value), 1, 40)
  fresh, found, stamp, left = true, {}, true, 1
  moved = shift()
  name, value = add()
end
if name then
  return { 'refused', name, string.sub(tostring(value), 1, 40) }
end

local birth = found[2]
if not birth then
  birth = ARGV[6]
  redis.call('HSET', KEYS[1], '@v', ARGV[1], '@birth', birth)
end
if stamp then
  redis.call('HSET', KEYS[1], '@slow', string.format('%d', now))
end
if moved then
  redis.call('HSET', KEYS[1], '@shifts', ARGV[10])
end
if left < 1 then
  for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
    if string.find(name, '^s%d+%.') and not changed[name] then
      changed[name] = left * (shifted[name] or number(redis.call('HGET', KEYS[1], name)) or 0)
    end
  end
end
for name, sum in pairs(shifted) do
  changed[name] = changed[name] or sum
end
local args = {}
for name, sum in pairs(changed) do
  args[#args + 1] = name
  args[#args + 1] = string.format('%.17g', sum)
  if #args == 200 then -- what unpack takes is bounded
    redis.call('HSET', KEYS[1], unpack(args))
    args = {}
  end
end
if #args > 0 then
  redis.call('HSET', KEYS[1], unpack(args))
end
local updated = number(found[3]) or 0
if updated > (now + 86400000) * 1000 then -- ahead by more than a day: nobody's clock
  updated = 0
end
if tonumber(ARGV[7]) > updated then
  redis.call('HSET', KEYS[1], '@updated', ARGV[7])
end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[5])
return { 'ok', birth, 'added', dropped }
