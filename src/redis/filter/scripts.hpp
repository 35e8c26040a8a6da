// Atomic operations, in Lua. Every key is in KEYS, and nothing of a user's is in the text.
//
// While a shard is repaired (repair.cpp), its newest b has not the header's stamp but the header's `repairing`.
//
// h is the hash {NAME~EPOCH:s}:h, b a layer's string. `stamp` is what the caller thinks the header's stamp is; where it
// is not, nothing is done, and the answer is 0 or -1: the caller reads the header and comes again.
#pragma once

#include "redis/net/batch.hpp"

namespace bloomery::redis::scripts {

/// KEYS h b; ARGV epoch, stamp, offset of the stamp in b, layer, number, expiry of all, expiry of b (0: none). 1: made,
/// 0: was there.
inline constexpr script create{R"lua(
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if epoch == ARGV[1] then return 0 end
if redis.call('EXISTS', KEYS[1], KEYS[2]) > 0 then
  return redis.error_reply('BLOOMERYEXISTS ' .. KEYS[1] .. ' or ' .. KEYS[2])
end
redis.call('SETRANGE', KEYS[2], ARGV[3], ARGV[2])
redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'stamp', ARGV[2], 'count', '0', 'layers', ARGV[5],
           'layer' .. ARGV[5], ARGV[4])
if ARGV[7] ~= '0' then redis.call('PEXPIREAT', KEYS[2], ARGV[7]) end
if ARGV[6] ~= '0' then
  redis.call('PEXPIREAT', KEYS[1], ARGV[6])
  if ARGV[7] == '0' or tonumber(ARGV[6]) < tonumber(ARGV[7]) then redis.call('PEXPIREAT', KEYS[2], ARGV[6]) end
end
return 1
)lua"};

/// KEYS h, newest b, new b, closed name of the newest b; ARGV stamp, new stamp, offset of the stamp in the new b, layer,
/// number, whether the server may have restarted (0 or 1). What the server refuses, for lack of memory or of rights,
/// changes nothing. A repaired shard begins the numbers of its layers again, and a server that crashed may have lost a
/// layer: clients that had not seen that may have written bits where the new layer belongs. They find no stamp, and write
/// them again.
inline constexpr script grow{R"lua(
if redis.call('HGET', KEYS[1], 'stamp') ~= ARGV[1] then return 0 end
if (redis.call('HGET', KEYS[1], 'repaired') or ARGV[6] == '1') and
   redis.call('STRLEN', KEYS[3]) < tonumber(ARGV[3]) + 16 then
  redis.call('DEL', KEYS[3])
end
if redis.call('EXISTS', KEYS[3]) > 0 then return redis.error_reply('BLOOMERYEXISTS ' .. KEYS[3]) end
local repairing = redis.call('HGET', KEYS[1], 'repairing')
if repairing == '' then repairing = false end
if redis.call('GETRANGE', KEYS[2], -16, -1) ~= (repairing or ARGV[1]) then
  return redis.error_reply('BLOOMERYGONE ' .. KEYS[2])
end
redis.call('SETRANGE', KEYS[3], ARGV[3], repairing or ARGV[2])
local renamed = redis.pcall('RENAME', KEYS[2], KEYS[4])
if renamed['err'] then
  redis.call('DEL', KEYS[3])
  return redis.error_reply(renamed['err'])
end
redis.call('SETRANGE', KEYS[4], redis.call('STRLEN', KEYS[4]) - 16, string.rep('\0', 16))
redis.call('HSET', KEYS[1], 'stamp', ARGV[2], 'layers', redis.call('HGET', KEYS[1], 'layers') .. ',' .. ARGV[5],
           'layer' .. ARGV[5], ARGV[4])
local left = redis.call('PTTL', KEYS[1])
if left > 0 then redis.call('PEXPIRE', KEYS[3], left) end
return 1
)lua"};

/// KEYS h; ARGV stamp, keys wanted, capacity of all layers. Of so many keys there may be more: at most what is wanted.
inline constexpr script reserve{R"lua(
if redis.call('HGET', KEYS[1], 'stamp') ~= ARGV[1] then return -1 end
local free = tonumber(ARGV[3]) - tonumber(redis.call('HGET', KEYS[1], 'count'))
local granted = math.max(0, math.min(free, tonumber(ARGV[2])))
if granted > 0 then redis.call('HINCRBY', KEYS[1], 'count', granted) end
return granted
)lua"};

/// KEYS h; ARGV stamp, keys that were reserved and did not come. Of a shard that has grown since then none: their room
/// is in a layer that is closed.
inline constexpr script give_back{R"lua(
if redis.call('HGET', KEYS[1], 'stamp') ~= ARGV[1] then return 0 end
redis.call('HINCRBY', KEYS[1], 'count', -tonumber(ARGV[2]))
return 1
)lua"};

/// KEYS h, newest b, new b; ARGV stamp, new stamp, offset of the stamp, generation, milliseconds of one, how many are
/// kept, expiry of the new b, whether the server may have restarted, as in `grow`. -1: the clock of the server is not
/// there yet. A newest b whose time is not over must be whole: bits written after its eviction must not pass for it. A
/// repair ends when all generations that are kept began after it did.
inline constexpr script rotate{R"lua(
if redis.call('HGET', KEYS[1], 'stamp') ~= ARGV[1] then return 0 end
local now = redis.call('TIME')
local generation = tonumber(ARGV[4])
if math.floor((now[1] * 1000 + math.floor(now[2] / 1000)) / tonumber(ARGV[5])) < generation then return -1 end
if ARGV[8] == '1' and redis.call('STRLEN', KEYS[3]) < tonumber(ARGV[3]) + 16 then redis.call('DEL', KEYS[3]) end
if redis.call('EXISTS', KEYS[3]) > 0 then return redis.error_reply('BLOOMERYEXISTS ' .. KEYS[3]) end
local layers = redis.call('HGET', KEYS[1], 'layers')
local repairing = redis.call('HGET', KEYS[1], 'repairing')
if repairing == '' then repairing = false end
if redis.call('GETRANGE', KEYS[2], -16, -1) == (repairing or ARGV[1]) then
  redis.call('SETRANGE', KEYS[2], redis.call('STRLEN', KEYS[2]) - 16, string.rep('\0', 16))
elseif (tonumber(string.match(layers, '%d+$')) + tonumber(ARGV[6])) * tonumber(ARGV[5]) >
       now[1] * 1000 + math.floor(now[2] / 1000) then
  return redis.error_reply('BLOOMERYGONE ' .. KEYS[2])
else
  redis.call('DEL', KEYS[2])
end
if repairing and generation - tonumber(ARGV[6]) >= tonumber(redis.call('HGET', KEYS[1], 'began') or generation) then
  repairing = false
  redis.call('HSET', KEYS[1], 'repairing', '')
end
redis.call('SETRANGE', KEYS[3], ARGV[3], repairing or ARGV[2])
redis.call('PEXPIREAT', KEYS[3], ARGV[7])
local left = redis.call('PTTL', KEYS[1])
if left > 0 and left < redis.call('PTTL', KEYS[3]) then redis.call('PEXPIRE', KEYS[3], left) end
local kept = ''
for number in string.gmatch(layers, '%d+') do
  if tonumber(number) > generation - tonumber(ARGV[6]) then kept = kept .. number .. ',' end
end
redis.call('HSET', KEYS[1], 'stamp', ARGV[2], 'layers', kept .. ARGV[4])
return 1
)lua"};

/// KEYS h, newest b; ARGV stamp, new stamp, the instance that is to come ('': none after all), then only that mark is
/// taken away (''). A b that is not whole gets no stamp, so that it does not pass for one. -1: there is no header.
inline constexpr script mark{R"lua(
local stamp = redis.call('HGET', KEYS[1], 'stamp')
if not stamp then return -1 end
if stamp ~= ARGV[1] then return 0 end
if ARGV[4] ~= '' and redis.call('HGET', KEYS[1], 'next') ~= ARGV[4] then return 1 end
if redis.call('GETRANGE', KEYS[2], -16, -1) == ARGV[1] then
  redis.call('SETRANGE', KEYS[2], redis.call('STRLEN', KEYS[2]) - 16, ARGV[2])
end
redis.call('HSET', KEYS[1], 'stamp', ARGV[2], 'next', ARGV[3])
return 1
)lua"};

/// KEYS m, m2; ARGV what they are, what they shall be, expiry (0: none, '': as it was). What is left of a time that m
/// tells would be a millisecond off when it is set.
inline constexpr script exchange{R"lua(
local held = redis.call('GET', KEYS[1]) and KEYS[1] or KEYS[2]
if redis.call('GET', held) ~= ARGV[1] then return 0 end
local left = redis.call('PTTL', held)
local told = string.match(ARGV[1], '\nexpires=(%d+)\n') or '0'
for _, key in ipairs(KEYS) do
  redis.call('SET', key, ARGV[2])
  if ARGV[3] == '' then
    if left > 0 and told ~= '0' then
      redis.call('PEXPIREAT', key, told)
    elseif left > 0 then
      redis.call('PEXPIRE', key, left)
    end
  elseif ARGV[3] ~= '0' then
    redis.call('PEXPIREAT', key, ARGV[3])
  end
end
return 1
)lua"};

/// KEYS m, m2, n, mark (unused); ARGV epoch of m, what n shall be, its expiry (0: none). A list of what n was before ('':
/// nothing); 0: m has another epoch.
inline constexpr script announce{R"lua(
local held = redis.call('GET', KEYS[1]) or redis.call('GET', KEYS[2])
if not held or string.match(held, '\nepoch=(%d+)\n') ~= ARGV[1] then return 0 end
local before = redis.call('GET', KEYS[3])
redis.call('SET', KEYS[3], ARGV[2])
if ARGV[3] ~= '0' then redis.call('PEXPIREAT', KEYS[3], ARGV[3]) end
return {before or ''}
)lua"};

/// KEYS m, m2, n, mark that the filter of m was dropped; ARGV epoch of m, what n is and m shall be, expiry of m (0:
/// none).
inline constexpr script replace{R"lua(
local held = redis.call('GET', KEYS[1]) or redis.call('GET', KEYS[2])
if not held or string.match(held, '\nepoch=(%d+)\n') ~= ARGV[1] then return 0 end
if redis.call('GET', KEYS[3]) ~= ARGV[2] then return 0 end
redis.call('DEL', KEYS[3])
for i = 1, 2 do
  redis.call('SET', KEYS[i], ARGV[2])
  if ARGV[3] ~= '0' then redis.call('PEXPIREAT', KEYS[i], ARGV[3]) end
end
redis.call('SET', KEYS[4], 'replaced')
return 1
)lua"};

/// KEYS m, m2, n, mark; ARGV epoch of m, if there is one. Deletes m, m2 and n, and sets the mark. A list of what n was
/// ('': nothing); 0: m has another epoch.
inline constexpr script drop{R"lua(
local held = redis.call('GET', KEYS[1]) or redis.call('GET', KEYS[2])
if held and string.match(held, '\nepoch=(%d+)\n') ~= ARGV[1] then return 0 end
local coming = redis.call('GET', KEYS[3])
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
redis.call('SET', KEYS[4], 'dropped')
return {coming or ''}
)lua"};

/// KEYS m, m2, n, mark; ARGV epoch. Sets the mark unless m or n describes the filter of this epoch. 1: the mark is set.
inline constexpr script condemn{R"lua(
for i = 1, 3 do
  local held = redis.call('GET', KEYS[i])
  if held and string.match(held, '\nepoch=(%d+)\n') == ARGV[1] then return 0 end
end
redis.call('DEL', KEYS[4])
redis.call('SET', KEYS[4], 'dropped')
return 1
)lua"};

/// KEYS m, m2, mark; ARGV the description, its expiry (0: none). Writes the description where it is missing. A list: 1
/// if there was none, 0 if there was one, -1 if the filter was dropped; then what is there now. The deletions of nothing
/// are for servers whose memory is full: these refuse only scripts whose first write takes memory.
inline constexpr script restore{R"lua(
local held = redis.call('GET', KEYS[1]) or redis.call('GET', KEYS[2])
if held and held ~= ARGV[1] then return {0, held} end
if redis.call('EXISTS', KEYS[3]) == 1 then return {-1, ''} end
for i = 1, 2 do
  if redis.call('EXISTS', KEYS[i]) == 0 then
    redis.call('DEL', KEYS[i])
    redis.call('SET', KEYS[i], ARGV[1])
    if ARGV[2] ~= '0' then redis.call('PEXPIREAT', KEYS[i], ARGV[2]) end
  end
end
return {held and 0 or 1, ARGV[1]}
)lua"};

/// KEYS h; ARGV epoch, description. Keeps a copy of the description in the header.
inline constexpr script keep_copy{R"lua(
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return 0 end
if redis.call('HGET', KEYS[1], 'meta') ~= ARGV[2] then redis.pcall('HSET', KEYS[1], 'meta', ARGV[2]) end
return 1
)lua"};

/// KEYS n, or m in the making; ARGV what it is. 1: it is taken away.
inline constexpr script withdraw{R"lua(
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
)lua"};

/// KEYS h, all b; ARGV stamp, expiry (0: none), then for each b when it goes by itself (0: not).
inline constexpr script expire{R"lua(
if redis.call('HGET', KEYS[1], 'stamp') ~= ARGV[1] then return 0 end
for i, key in ipairs(KEYS) do
  local at = ARGV[2]
  if i > 1 and ARGV[i + 1] ~= '0' and (at == '0' or tonumber(ARGV[i + 1]) < tonumber(at)) then at = ARGV[i + 1] end
  if at == '0' then
    redis.call('PERSIST', key)
  else
    redis.call('PEXPIREAT', key, at)
  end
end
return 1
)lua"};

/// KEYS h, b; ARGV stamp, then for each key the number of its counters and the counters. A list: 1 removed, 0 not
/// found.
inline constexpr script remove{R"lua(
if redis.call('HGET', KEYS[1], 'stamp') ~= ARGV[1] or redis.call('GETRANGE', KEYS[2], -16, -1) ~= ARGV[1] then
  return 0
end
local results = {}
local at = 2
while at <= #ARGV do
  local count = tonumber(ARGV[at])
  local get = {}
  for i = 1, count do
    get[3 * i - 2] = 'GET'
    get[3 * i - 1] = 'u4'
    get[3 * i] = '#' .. ARGV[at + i]
  end
  local counters = redis.call('BITFIELD', KEYS[2], unpack(get))
  local all = true
  local set = {}
  for i = 1, count do
    if counters[i] == 0 then all = false end
    if counters[i] < 15 then
      set[#set + 1] = 'INCRBY'
      set[#set + 1] = 'u4'
      set[#set + 1] = '#' .. ARGV[at + i]
      set[#set + 1] = '-1'
    end
  end
  if not all then
    redis.call('HINCRBY', KEYS[1], 'refused', 1)
  elseif #set > 0 then
    redis.call('BITFIELD', KEYS[2], unpack(set))
  end
  results[#results + 1] = all and 1 or 0
  at = at + count + 1
end
return results
)lua"};

/// KEYS h, b, a name in between; ARGV stamp, bits to be set.
inline constexpr script merge{R"lua(
if redis.call('HGET', KEYS[1], 'stamp') ~= ARGV[1] or redis.call('GETRANGE', KEYS[2], -16, -1) ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[3], ARGV[2])
local merged = redis.pcall('BITOP', 'OR', KEYS[2], KEYS[2], KEYS[3])
redis.call('DEL', KEYS[3])
if type(merged) == 'table' then return redis.error_reply(merged['err']) end
local left = redis.call('PTTL', KEYS[1])
if left > 0 then redis.call('PEXPIRE', KEYS[2], left) end
return 1
)lua"};

/// KEYS h, newest b, b of a slice, a name in between; ARGV stamp, new stamp, lines of the slice, its expiry, layers
/// with the slice, 1: it becomes the newest. Puts a slice into a window. The stamp changes only with the layers.
inline constexpr script add_slice{R"lua(
if redis.call('HGET', KEYS[1], 'stamp') ~= ARGV[1] or redis.call('GETRANGE', KEYS[2], -16, -1) ~= ARGV[1] then
  return 0
end
if KEYS[3] == KEYS[2] then
  redis.call('SET', KEYS[4], ARGV[3])
  local merged = redis.pcall('BITOP', 'OR', KEYS[3], KEYS[3], KEYS[4])
  redis.call('DEL', KEYS[4])
  if type(merged) == 'table' then return redis.error_reply(merged['err']) end
else
  if redis.call('EXISTS', KEYS[3]) > 0 then return redis.error_reply('BLOOMERYEXISTS ' .. KEYS[3]) end
  local closed = string.rep('\0', 16)
  redis.call('SETRANGE', KEYS[3], #ARGV[3], ARGV[6] == '1' and ARGV[2] or closed)
  redis.call('SETRANGE', KEYS[3], 0, ARGV[3])
  redis.call('SETRANGE', KEYS[2], redis.call('STRLEN', KEYS[2]) - 16, ARGV[6] == '1' and closed or ARGV[2])
  redis.call('HSET', KEYS[1], 'stamp', ARGV[2], 'layers', ARGV[5])
end
redis.call('PEXPIREAT', KEYS[3], ARGV[4])
local left = redis.call('PTTL', KEYS[1])
if left > 0 and left < redis.call('PTTL', KEYS[3]) then redis.call('PEXPIRE', KEYS[3], left) end
return 1
)lua"};

/// KEYS h, b; ARGV epoch, bytes of b. Takes away bits that were written where there is no filter any more, or where a
/// layer was evicted: all that make one make it in full length.
inline constexpr script sweep{R"lua(
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if epoch and (epoch ~= ARGV[1] or redis.call('STRLEN', KEYS[2]) >= tonumber(ARGV[2])) then return 0 end
return redis.call('DEL', KEYS[2])
)lua"};

/// KEYS h, all b there may be. What is left of a shard whose header was evicted. 0: it has a header.
inline constexpr script unlink_headless{R"lua(
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('UNLINK', unpack(KEYS))
return 1
)lua"};

/// KEYS key; ARGV text, milliseconds. Takes a lease, or prolongs it. 0: another client has it.
inline constexpr script lease{R"lua(
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
)lua"};

/// KEYS h, b; ARGV epoch, stamp, layers, number of one, that layer, count, expiry (0: none), 1: b must have this stamp.
/// Writes a lost header. 0: there is one, or b has another stamp.
inline constexpr script make_header{R"lua(
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
if ARGV[8] == '1' and redis.call('GETRANGE', KEYS[2], -16, -1) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'stamp', ARGV[2], 'count', ARGV[6], 'layers', ARGV[3],
           'layer' .. ARGV[4], ARGV[5])
if ARGV[7] ~= '0' then redis.call('PEXPIREAT', KEYS[1], ARGV[7]) end
return 1
)lua"};

/// KEYS h, newest b, then b that stay as closed layers, then b that go; ARGV stamp, new stamp, what the newest b gets as
/// its stamp during the repair, offset of that in each b, layers, number of the newest, that layer, expiry of the newest
/// b (0: that of the header), 1: the newest b keeps its bits, number of closed b. 0: something has changed.
inline constexpr script begin_repair{R"lua(
if redis.call('HGET', KEYS[1], 'stamp') ~= ARGV[1] then return 0 end
local closed = tonumber(ARGV[10])
local length = tonumber(ARGV[4]) + 16
for i = ARGV[9] == '1' and 2 or 3, 2 + closed do
  if redis.call('STRLEN', KEYS[i]) ~= length then return 0 end
end
if ARGV[9] ~= '1' then redis.call('UNLINK', KEYS[2]) end
for i = 3 + closed, #KEYS do redis.call('UNLINK', KEYS[i]) end
for i = 3, 2 + closed do redis.call('SETRANGE', KEYS[i], ARGV[4], string.rep('\0', 16)) end
redis.call('SETRANGE', KEYS[2], ARGV[4], ARGV[3])
redis.call('HSET', KEYS[1], 'stamp', ARGV[2], 'repairing', ARGV[3], 'repaired', ARGV[3], 'count', '0',
           'began', ARGV[6], 'layers', ARGV[5], 'layer' .. ARGV[6], ARGV[7])
if ARGV[8] ~= '0' then redis.call('PEXPIREAT', KEYS[2], ARGV[8]) end
local left = redis.call('PTTL', KEYS[1])
local own = redis.call('PTTL', KEYS[2])
if left > 0 and (own < 0 or left < own) then redis.call('PEXPIRE', KEYS[2], left) end
return 1
)lua"};

/// KEYS h, newest b; ARGV stamp, new stamp, the header's `repairing`. The shard is whole from now on.
inline constexpr script end_repair{R"lua(
if redis.call('HGET', KEYS[1], 'stamp') ~= ARGV[1] then return 0 end
if redis.call('GETRANGE', KEYS[2], -16, -1) ~= ARGV[3] then return redis.error_reply('BLOOMERYGONE ' .. KEYS[2]) end
redis.call('SETRANGE', KEYS[2], redis.call('STRLEN', KEYS[2]) - 16, ARGV[2])
redis.call('HSET', KEYS[1], 'stamp', ARGV[2], 'repairing', '')
return 1
)lua"};

}  // namespace bloomery::redis::scripts
