-- Owns: what wrk writes down about each request: begin (Unix us), status, duration (us), and whether it was told to go.
-- One connection a thread, so that a thread's answer belongs to its last question. Arguments: folder for the files, pause between
-- two requests in ms, and "leave" where a connection that is told to go has nowhere else to go.
local ffi = require("ffi")
ffi.cdef [[
typedef struct { long s; long ns; } meter_time;
int clock_gettime(int clock, meter_time *time);
int getppid(void);
]]
local CLOCK_REALTIME = 0
local time = ffi.new("meter_time")
local threads = 0

local function now()
  ffi.C.clock_gettime(CLOCK_REALTIME, time)
  return tonumber(time.s) * 1e6 + math.floor(tonumber(time.ns) / 1e3)
end

function setup(thread)
  threads = threads + 1
  thread:set("number", threads)
end

function init(arguments)
  file = assert(io.open(arguments[1] .. "/" .. number, "w"))
  lines = 0
  pauseMs = tonumber(arguments[2])
  leaves = arguments[3] == "leave"
  parent = ffi.C.getppid()
  math.randomseed(number)
  text = wrk.format("GET")
end

function delay()
  return math.random(pauseMs - 1, pauseMs + 1)
end

function request()
  sentUs = now()
  return text
end

function response(status, headers)
  local told = string.lower(headers["connection"] or headers["Connection"] or "") == "close"
  file:write(string.format("%.0f\t%d\t%.0f\t%d\n", sentUs, status, now() - sentUs, told and 1 or 0))
  lines = lines + 1
  -- The meter looks every second whether the file grows.
  if lines % 20 == 0 then
    file:flush()
    -- A meter that was killed can't end its load.
    if ffi.C.getppid() ~= parent then os.exit(1) end
  end
  if told and leaves then
    file:flush()
    wrk.thread:stop()
  end
end
