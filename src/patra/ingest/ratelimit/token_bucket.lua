-- The machine of token_bucket.py, said again for Redis: one script, one key, the server's clock (ch. 4.10).
-- ARGV: verb (ask | signal | back | look), policy, request (both msgpack). Gives {kind, a, b, why, now, state}.
-- Numbers are doubles here: everything stays below 2^53, and divisions are exact by fmod.
local PERMIT, SECOND = 1000000000, 1000000
local POLL, GRACE, FLIGHT, SLACK = 50000, SECOND, 300 * SECOND, 2 * SECOND
local HOUR, DAY = 3600 * SECOND, 86400 * SECOND

local function div(a, b)  -- floor for a >= 0
  return (a - math.fmod(a, b)) / b
end

local function ceil_div(a, b)
  return div(a + b - 1, b)
end

local function jittered(span, jitter)
  return span + div(span * (50 + div(jitter, 10)), 1000)
end

local function ceiling(p, s)
  if s.ceiling > 0 then return math.min(p.rate, s.ceiling) end
  return p.rate
end

local function warm_rate(p, s, rate, at)
  if p.warmup > 0 and at - s.started < p.warmup then
    return math.max(div(rate * math.max(div(math.max(at - s.started, 0) * 1000, p.warmup), 100), 1000), 1)
  end
  return rate
end

local function in_lots(s)
  local n = 0
  for _, lot in ipairs(s.lots) do n = n + lot[2] end
  return n
end

local function kept(list, keep)
  local out = {}
  for _, item in ipairs(list) do
    if keep(item) then out[#out + 1] = item end
  end
  return out
end

local function advance(p, s, now)
  local room = (p.burst - in_lots(s)) * PERMIT
  local rate = math.max(math.min(s.rate, ceiling(p, s)), 1)
  local dt = now - s.at
  if dt > 0 and s.tokens < room then
    local speed = warm_rate(p, s, rate, s.at)
    if dt >= ceil_div(room - s.tokens, speed) then s.tokens = room else s.tokens = s.tokens + speed * dt end
  end
  if rate < ceiling(p, s) and now > s.calm_from then
    local periods = div(now - s.calm_from, p.calm)
    rate = math.min(ceiling(p, s), rate + p.step * periods)
    s.calm_from = s.calm_from + periods * p.calm
  end
  s.rate = rate
  local hour, day = math.max(div(now, HOUR), s.hour), math.max(div(now, DAY), s.day)
  if hour ~= s.hour then s.hour_used = 0 end
  if day ~= s.day then s.day_used = 0 end
  s.hour, s.day = hour, day
  s.at = math.max(s.at, now)
  s.tokens = math.min(s.tokens, room)
  if s.reset <= now then s.left = -1 end
  s.queue = kept(s.queue, function(w) return w[3] >= now end)
  s.lots = kept(s.lots, function(l) return l[3] > now end)
  s.flights = kept(s.flights, function(f) return f[2] > now end)
end

local function blocked(p, s, ask, now)
  local quotas = {{p.quota_day, s.day_used, (s.day + 1) * DAY}, {p.quota_hour, s.hour_used, (s.hour + 1) * HOUR}}
  for _, q in ipairs(quotas) do
    if q[1] > 0 and q[2] + ask.cost > q[1] then return 'QUOTA_HARD', q[3] end
    if q[1] > 0 and q[2] + ask.cost > div(q[1] * ask.share, 1000) then return 'QUOTA_SOFT', q[3] end
  end
  if s.left >= 0 and s.left < ask.cost and now < s.reset then return 'PROVIDER_WINDOW', s.reset end
  if now < s.cooldown then return 'COOLDOWN', s.cooldown end
  return nil, 0
end

local function crowded(p, s)
  local bound = p.concurrency
  if s.concurrency > 0 and (bound == 0 or s.concurrency < bound) then bound = s.concurrency end
  return bound > 0 and #s.flights >= bound
end

local function leave(s, task)
  s.queue = kept(s.queue, function(w) return w[1] ~= task end)
end

local function place(s, waiter)
  for i, w in ipairs(s.queue) do
    if w[1] == waiter[1] then
      s.queue[i] = waiter
      return
    end
  end
  s.queue[#s.queue + 1] = waiter
end

local function give_back(s, permit, unused)
  if permit == '' then return end
  local lots = kept(s.lots, function(l) return l[1] ~= permit end)
  if #lots == #s.lots then return end
  s.lots = lots
  s.tokens = s.tokens + unused * PERMIT
  if s.left >= 0 then s.left = s.left + unused end
  s.hour_used = math.max(s.hour_used - unused, 0)
  s.day_used = math.max(s.day_used - unused, 0)
end

local function allow(p, s, ask, now)
  local permits = math.min(ask.want, p.quantum, div(s.tokens, ask.cost * PERMIT))
  if p.quota_hour > 0 then
    permits = math.min(permits, div(div(p.quota_hour * ask.share, 1000) - s.hour_used, ask.cost))
  end
  if p.quota_day > 0 then
    permits = math.min(permits, div(div(p.quota_day * ask.share, 1000) - s.day_used, ask.cost))
  end
  if s.left >= 0 then permits = math.min(permits, div(s.left, ask.cost)) end
  local flies = p.concurrency > 0 or s.concurrency > 0
  if flies then permits = 1 else permits = math.max(permits, 1) end
  local spent = permits * ask.cost
  s.tokens = s.tokens - spent * PERMIT
  if s.left >= 0 then s.left = s.left - spent end
  s.hour_used = s.hour_used + spent
  s.day_used = s.day_used + spent
  leave(s, ask.task)
  if permits > 1 then s.lots[#s.lots + 1] = {ask.permit, spent, now + p.lease} end
  if flies then s.flights[#s.flights + 1] = {ask.permit, now + FLIGHT} end
  return 'ALLOW', permits, now + p.lease, ''
end

local function decide(p, s, ask, now)
  give_back(s, ask.returns, ask.unused)
  advance(p, s, now)
  local why, until_ = blocked(p, s, ask, now)
  if why then
    leave(s, ask.task)
    if until_ - now > ask.deadline then return 'REJECT', 0, until_, why end
    return 'WAIT', 0, now + jittered(until_ - now, ask.jitter), why
  end
  local ahead = 0
  for _, w in ipairs(s.queue) do
    if w[1] == ask.task then break end
    ahead = ahead + w[2]
  end
  local full = crowded(p, s)
  if ahead == 0 and not full and s.tokens >= ask.cost * PERMIT then return allow(p, s, ask, now) end
  local missing = (ahead + ask.cost) * PERMIT - s.tokens
  local wait = 0
  if missing > 0 then wait = ceil_div(missing, warm_rate(p, s, s.rate, now)) end
  if wait > ask.deadline then
    leave(s, ask.task)
    return 'REJECT', 0, now + wait, 'OVER_DEADLINE'
  end
  local reason = 'TOKENS'
  if full then reason = 'CONCURRENCY' elseif wait == 0 then reason = 'TURN' end
  local span = wait
  if wait == 0 or full then span = math.max(wait, POLL) end
  until_ = now + jittered(span, ask.jitter)
  place(s, {ask.task, ask.cost, until_ + GRACE})
  return 'WAIT', 0, until_, reason
end

local function demote(p, s, now, floor)
  s.rate = math.min(s.rate, math.max(div(s.rate * 1000, p.demote), floor, 1))
  s.demoted, s.calm_from = now, now
end

local function tell(s, signal, now)
  if signal.limit > 0 then s.ceiling = signal.limit end
  if signal.concurrency > 0 then s.concurrency = signal.concurrency end
  if signal.cost > 0 then s.tokens = s.tokens - signal.cost * PERMIT end
  if signal.remaining < 0 then return end
  s.tokens = math.min(s.tokens, signal.remaining * PERMIT)
  if signal.reset <= now then return end
  if s.left >= 0 and math.abs(signal.reset - s.reset) <= SLACK then
    s.left = math.min(s.left, signal.remaining)
    s.reset = math.max(s.reset, signal.reset)
  else
    s.left, s.reset = signal.remaining, signal.reset
  end
end

local function feedback(p, s, signal, now)
  advance(p, s, now)
  s.flights = kept(s.flights, function(f) return f[1] ~= signal.permit end)
  if signal.sign == 'NOT_SENT' then
    local room = (p.burst - in_lots(s)) * PERMIT
    s.tokens = math.max(math.min(s.tokens + signal.cost * PERMIT, room), s.tokens)
    if s.left >= 0 then s.left = s.left + signal.cost end
    s.hour_used = math.max(s.hour_used - signal.cost, 0)
    s.day_used = math.max(s.day_used - signal.cost, 0)
    return
  end
  if signal.sign == 'DOWNSHIFT' then
    demote(p, s, now, math.max(p.floor, div(p.rate * 3, 10)))
    return
  end
  if signal.sign == 'HTTP_429' or signal.sign == '5xx_TRANSIENT' then
    if signal.allowed_at > s.demoted then demote(p, s, now, p.floor) end
    if signal.sign == 'HTTP_429' then s.tokens = math.min(s.tokens, 0) end
  end
  if signal.retry_after > 0 then
    local until_ = math.max(s.cooldown, now + jittered(signal.retry_after, signal.jitter), s.at)
    local gained = warm_rate(p, s, s.rate, s.at) * math.min(until_ - s.at, PERMIT)
    s.tokens = math.min(math.min(s.tokens, PERMIT) + gained, PERMIT)
    s.cooldown, s.at = until_, until_
    s.calm_from = math.max(s.calm_from, until_)
  end
  tell(s, signal, now)
end

local time = redis.call('TIME')
local now = time[1] * SECOND + time[2]
local p = cmsgpack.unpack(ARGV[2])
local s = redis.call('GET', KEYS[1])
if s then
  s = cmsgpack.unpack(s)
else
  s = {
    at = now, started = now, tokens = (p.warmup > 0 and 1 or p.burst) * PERMIT, rate = p.rate, ceiling = 0,
    demoted = -1, calm_from = 0, cooldown = 0, left = -1, reset = 0, hour = div(now, HOUR), hour_used = 0,
    day = div(now, DAY), day_used = 0, concurrency = 0, queue = {}, lots = {}, flights = {},
  }
end
local kind, permits, until_, why = 'STATE', 0, 0, ''
if ARGV[1] == 'ask' then
  kind, permits, until_, why = decide(p, s, cmsgpack.unpack(ARGV[3]), now)
elseif ARGV[1] == 'signal' then
  feedback(p, s, cmsgpack.unpack(ARGV[3]), now)
else
  if ARGV[1] == 'back' then
    local lot = cmsgpack.unpack(ARGV[3])
    give_back(s, lot.returns, lot.unused)
  end
  advance(p, s, now)
end
local packed = cmsgpack.pack(s)
redis.call('SET', KEYS[1], packed, 'PX', 2 * 86400 * 1000)
return {kind, permits, until_, why, now, packed}
