-- What wrk sends, and the one line in which it says what came back.
--
--   wrk … -s load.lua URL -- REQUESTS FIRST
--
-- REQUESTS is a file with a request a line, sent in turn: the method, the path, the body and any headers, with tabs
-- between them. A path may hold one of these, so that no two requests ask the same question:
--   {date}      an instant of the year 2199, far beyond all data, later by a microsecond each time
--   {number}    the same as microseconds since 1970
--   {fraction}  six digits behind the point of a second, counting up
-- FIRST is where the counting begins: a later run on the same server begins where no earlier one has been.

local MICROSECONDS_OF_2199 = 7226582400000000

local render = {
  date = function(n)
    local seconds = math.floor(n / 1000000)
    return string.format("2199-01-%02dT%02d:%02d:%02d.%06dZ", math.floor(seconds / 86400) % 28 + 1,
      math.floor(seconds / 3600) % 24, math.floor(seconds / 60) % 60, seconds % 60, n % 1000000)
  end,
  number = function(n) return string.format("%.0f", MICROSECONDS_OF_2199 + n) end,
  fraction = function(n) return string.format("%06d", n % 1000000) end,
}

local function fields_of(line)
  local fields = {}
  for field in (line .. "\t"):gmatch("([^\t]*)\t") do fields[#fields + 1] = field end
  return fields
end

local function headers_of(fields)
  local headers = {}
  for index = 4, #fields do
    local name, value = fields[index]:match("^([^:]+): (.*)$")
    headers[name] = value
  end
  return headers
end

-- The text of a request, cut where the counter goes in.
local function cut(text)
  for kind, value in pairs(render) do
    local from, to = text:find("{" .. kind .. "}", 1, true)
    if from then return { before = text:sub(1, from - 1), value = value, after = text:sub(to + 1) } end
  end
  return { before = text }
end

function init(arguments)
  local requests, n = {}, tonumber(arguments[2])
  for line in io.lines(arguments[1]) do
    local fields = fields_of(line)
    local body = fields[3] ~= "" and fields[3] or nil
    requests[#requests + 1] = cut(wrk.format(fields[1], fields[2], headers_of(fields), body))
  end
  local count = #requests
  if count == 1 and not requests[1].value then
    -- The same bytes every time: without a function of ours wrk does not ask Lua at all.
    local fields = fields_of(io.lines(arguments[1])())
    wrk.method, wrk.path, wrk.body = fields[1], fields[2], fields[3] ~= "" and fields[3] or nil
    for name, value in pairs(headers_of(fields)) do wrk.headers[name] = value end
    return
  end
  function request()
    local chosen = requests[n % count + 1]
    n = n + 1
    if not chosen.value then return chosen.before end
    return chosen.before .. chosen.value(n) .. chosen.after
  end
end

function done(summary, latency)
  local errors = summary.errors
  print(string.format(
    'result {"requests":%d,"duration_us":%d,"bytes":%.0f,"p50_us":%d,"p99_us":%d,"max_us":%d,'
      .. '"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}',
    summary.requests, summary.duration, summary.bytes, latency:percentile(50), latency:percentile(99), latency.max,
    errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
