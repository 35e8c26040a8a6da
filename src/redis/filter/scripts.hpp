// Operations that must be atomic, as Lua scripts. All keys are passed in KEYS, and scripts contain no user data.
//
// h is the hash {NAME~EPOCH:s}:h, the header of a shard; b is the string of a layer. Argument `stamp` is the shard
// version that the caller expects in the header. If the version differs, a script does nothing and returns 0 or -1: the
// caller then reads the header and tries again.
//
// During the repair of a shard (repair.cpp), its newest b ends with the header's `repairing` instead of the shard
// version.
#pragma once

#include "redis/net/batch.hpp"

namespace bloomery::redis::scripts {

/// Creates a shard. KEYS h b; ARGV epoch, stamp, offset of the stamp in b, layer, number, expiry of the filter, expiry
/// of b (0: none). Returns 1: created, 0: existed.
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

/// Adds a layer. KEYS h, newest b, new b, name of the newest b after closing; ARGV stamp, new stamp, offset of the
/// stamp in the new b, layer, number, whether the server may have restarted (0 or 1). If the server refuses it for lack
/// of memory or permissions, nothing changes. A repaired shard numbers its layers from the start, and a server that
/// crashed may have lost a layer. So clients that do not know this may have written bits under the name of the new
/// layer. They then find no shard version and write the bits again.
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

/// Reserves room. KEYS h; ARGV stamp, number of keys, capacity of all layers. Returns the number of keys that fit, at
/// most the requested number.
inline constexpr script reserve{R"lua(
if redis.call('HGET', KEYS[1], 'stamp') ~= ARGV[1] then return -1 end
local free = tonumber(ARGV[3]) - tonumber(redis.call('HGET', KEYS[1], 'count'))
local granted = math.max(0, math.min(free, tonumber(ARGV[2])))
if granted > 0 then redis.call('HINCRBY', KEYS[1], 'count', granted) end
return granted
)lua"};

/// Returns unused room. KEYS h; ARGV stamp, number of reserved keys that were not inserted. Does nothing if the shard
/// has grown since then: that room is in a closed layer.
inline constexpr script give_back{R"lua(
if redis.call('HGET', KEYS[1], 'stamp') ~= ARGV[1] then return 0 end
redis.call('HINCRBY', KEYS[1], 'count', -tonumber(ARGV[2]))
return 1
)lua"};

/// Begins a generation. KEYS h, newest b, new b; ARGV stamp, new stamp, offset of the stamp, generation, length of a
/// generation in milliseconds, number of generations kept, expiry of the new b, whether the server may have restarted,
/// as in `grow`. Returns -1 if the server's clock is behind that generation. A newest b that has not expired must be
/// complete: bits written after its eviction must not count as a layer. A repair ends when all kept generations began
/// after it did.
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

/// Sets a replacement mark. KEYS h, newest b; ARGV stamp, new stamp, the instance of the coming filter (empty: remove
/// the mark), the only instance whose mark is removed (empty: any). An incomplete b gets no version, so that it does
/// not count as complete. Returns -1 if there is no header.
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

/// Replaces the description. KEYS m, m2; ARGV the present text, the new text, expiry (0: none, empty: unchanged). If
/// the description contains an expiry, that is set again, because the remaining time would be off by a millisecond.
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

/// Announces a coming filter. KEYS m, m2, n, drop mark (unused); ARGV epoch of m, new text of n, its expiry (0: none).
/// Returns a list with the former text of n (empty: none); 0: m has another epoch.
inline constexpr script announce{R"lua(
local held = redis.call('GET', KEYS[1]) or redis.call('GET', KEYS[2])
if not held or string.match(held, '\nepoch=(%d+)\n') ~= ARGV[1] then return 0 end
local before = redis.call('GET', KEYS[3])
redis.call('SET', KEYS[3], ARGV[2])
if ARGV[3] ~= '0' then redis.call('PEXPIREAT', KEYS[3], ARGV[3]) end
return {before or ''}
)lua"};

/// Puts the coming filter in place. KEYS m, m2, n, drop mark of the filter of m; ARGV epoch of m, the text of n, which
/// becomes that of m, expiry of m (0: none).
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

/// Drops a filter. KEYS m, m2, n, drop mark; ARGV epoch of m, if there is one. Deletes m, m2 and n, and sets the drop
/// mark. Returns a list with the former text of n (empty: none); 0: m has another epoch.
inline constexpr script drop{R"lua(
local held = redis.call('GET', KEYS[1]) or redis.call('GET', KEYS[2])
if held and string.match(held, '\nepoch=(%d+)\n') ~= ARGV[1] then return 0 end
local coming = redis.call('GET', KEYS[3])
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
redis.call('SET', KEYS[4], 'dropped')
return {coming or ''}
)lua"};

/// Sets the drop mark unless m or n describes the filter of this epoch. KEYS m, m2, n, drop mark; ARGV epoch. Returns 1
/// if the mark was set.
inline constexpr script condemn{R"lua(
for i = 1, 3 do
  local held = redis.call('GET', KEYS[i])
  if held and string.match(held, '\nepoch=(%d+)\n') == ARGV[1] then return 0 end
end
redis.call('DEL', KEYS[4])
redis.call('SET', KEYS[4], 'dropped')
return 1
)lua"};

/// Restores a missing description. KEYS m, m2, drop mark; ARGV the description, its expiry (0: none). Returns a list: 1
/// if there was none, 0 if there was one, -1 if the filter was dropped; then the present description. The deletions of
/// missing keys are for servers whose memory is full: these refuse only scripts whose first write takes memory.
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

/// Stores a copy of the description in a header. KEYS h; ARGV epoch, description.
inline constexpr script keep_copy{R"lua(
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return 0 end
if redis.call('HGET', KEYS[1], 'meta') ~= ARGV[2] then redis.pcall('HSET', KEYS[1], 'meta', ARGV[2]) end
return 1
)lua"};

/// Deletes n, or an m of a filter that is being created. KEYS key; ARGV its expected text. Returns 1 if it was deleted.
inline constexpr script withdraw{R"lua(
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
)lua"};

/// Sets the expiry of a shard. KEYS h, all b; ARGV stamp, expiry (0: none), then for each b its own expiry (0: none).
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

/// Removes keys from a counting filter. KEYS h, b; ARGV stamp, then for each key the number of its counters and their
/// indices. Returns a list: 1 removed, 0 not found.
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

/// Merges bits into a layer. KEYS h, b, a temporary name; ARGV stamp, bits to be set.
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

/// Adds a slice to a window. KEYS h, newest b, b of the slice, a temporary name; ARGV stamp, new stamp, lines of the
/// slice, its expiry, layers with the slice, 1: it becomes the newest. The version changes only if the layers change.
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

/// Removes bits that were written where no filter is any more, or where a layer was evicted: all layers are created in
/// full length. KEYS h, b; ARGV epoch, bytes of b.
inline constexpr script sweep{R"lua(
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if epoch and (epoch ~= ARGV[1] or redis.call('STRLEN', KEYS[2]) >= tonumber(ARGV[2])) then return 0 end
return redis.call('DEL', KEYS[2])
)lua"};

/// Removes the rest of a shard whose header was evicted. KEYS h, all b that may exist. Returns 0 if it has a header.
inline constexpr script unlink_headless{R"lua(
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('UNLINK', unpack(KEYS))
return 1
)lua"};

/// Takes or renews a lease. KEYS key; ARGV text, milliseconds. Returns 0 if another client has it.
inline constexpr script lease{R"lua(
local held = redis.call('GET', KEYS[1])
if held and held ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
)lua"};

/// Writes a lost header. KEYS h, b; ARGV epoch, stamp, layers, number of a layer, that layer, count, expiry (0: none),
/// 1: b must end with this stamp. Returns 0 if there is a header, or if b ends differently.
inline constexpr script make_header{R"lua(
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
if ARGV[8] == '1' and redis.call('GETRANGE', KEYS[2], -16, -1) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'stamp', ARGV[2], 'count', ARGV[6], 'layers', ARGV[3],
           'layer' .. ARGV[4], ARGV[5])
if ARGV[7] ~= '0' then redis.call('PEXPIREAT', KEYS[1], ARGV[7]) end
return 1
)lua"};

/// Begins the repair of a shard. KEYS h, newest b, then each b that stays as a closed layer, then each b that is
/// removed; ARGV stamp, new stamp, the repair token for the end of the newest b, offset of the end in each b, layers,
/// number of the newest layer, that layer, expiry of the newest b (0: that of the header), 1: the newest b keeps its
/// bits, number of closed b. Returns 0 if something has changed.
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

/// Ends the repair of a shard, which is complete from now on. KEYS h, newest b; ARGV stamp, new stamp, the header's
/// `repairing`.
inline constexpr script end_repair{R"lua(
if redis.call('HGET', KEYS[1], 'stamp') ~= ARGV[1] then return 0 end
if redis.call('GETRANGE', KEYS[2], -16, -1) ~= ARGV[3] then return redis.error_reply('BLOOMERYGONE ' .. KEYS[2]) end
redis.call('SETRANGE', KEYS[2], redis.call('STRLEN', KEYS[2]) - 16, ARGV[2])
redis.call('HSET', KEYS[1], 'stamp', ARGV[2], 'repairing', '')
return 1
)lua"};

}  // namespace bloomery::redis::scripts
