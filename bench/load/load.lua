-- The requests that wrk sends, and one line with the result.
--
--   wrk … -s load.lua URL -- REQUESTS FIRST
--
-- REQUESTS is a file with one request per line, sent in turn: method, path, body and headers, separated by tabs.
-- A path may contain one placeholder, so that no two requests are equal:
--   {date}      an instant in the year 2199, later than all data, one microsecond later each time
--   {fraction}  the six fraction digits of a second, counting up
-- FIRST is the first value of the counter. Each run on the same server starts at another value.

local render = {
  date = function(n)
    local seconds = math.floor(n / 1000000)
    return string.format("2199-01-%02dT%02d:%02d:%02d.%06dZ", math.floor(seconds / 86400) % 28 + 1,
      math.floor(seconds / 3600) % 24, math.floor(seconds / 60) % 60, seconds % 60, n % 1000000)
  end,
  fraction = function(n) return string.format("%06d", n % 1000000) end,
}

local function split_fields(line)
  local fields = {}
  for field in (line .. "\t"):gmatch("([^\t]*)\t") do fields[#fields + 1] = field end
  return fields
end

local function read_headers(fields)
  local headers = {}
  for index = 4, #fields do
    local name, value = fields[index]:match("^([^:]+): (.*)$")
    headers[name] = value
  end
  return headers
end

-- The request's text, split at its placeholder.
local function split_at_placeholder(text)
  for kind, value in pairs(render) do
    local from, to = text:find("{" .. kind .. "}", 1, true)
    if from then return { before = text:sub(1, from - 1), value = value, after = text:sub(to + 1) } end
  end
  return { before = text }
end

function init(arguments)
  local requests, n = {}, tonumber(arguments[2])
  for line in io.lines(arguments[1]) do
    local fields = split_fields(line)
    local body = fields[3] ~= "" and fields[3] or nil
    requests[#requests + 1] = split_at_placeholder(wrk.format(fields[1], fields[2], read_headers(fields), body))
  end
  local count = #requests
  if count == 1 and not requests[1].value then
    -- A constant request: without a request() function wrk does not call Lua for each one.
    local fields = split_fields(io.lines(arguments[1])())
    wrk.method, wrk.path, wrk.body = fields[1], fields[2], fields[3] ~= "" and fields[3] or nil
    for name, value in pairs(read_headers(fields)) do wrk.headers[name] = value end
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
    'result {"requests":%d,"duration_us":%d,"bytes":%.0f,"p50_us":%d,"p99_us":%d,'
      .. '"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}',
    summary.requests, summary.duration, summary.bytes, latency:percentile(50), latency:percentile(99),
    errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
