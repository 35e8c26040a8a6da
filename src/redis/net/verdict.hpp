// What a server's error means: to the router, which may do the same again, and to people.
#pragma once

#include <bloomery/redis_address.hpp>

#include "redis/net/batch.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace bloomery::redis {

/// What an error asks the sender to do.
enum class error_class : std::uint8_t {
  final,        ///< it is the answer
  later,        ///< the same again after a pause
  other_node,   ///< MOVED
  ask,          ///< ASK
  load_script,  ///< NOSCRIPT
  reconnect,    ///< this is not the server any more that it was
};

error_class error_class_of(std::string_view text);

/// The error itself. Up to version 6 one inside a script comes in a sentence of its own:
/// "ERR Error running script (call to f_...): @user_script: 1: -READONLY You can't write against a read only replica."
std::string_view essence_of(std::string_view text);

/// What may be shown of an error in answer to AUTH. A server that does not know AUTH, or something that is no server,
/// may repeat what it was told: the password. So it is only what is known.
std::string shown_answer_to_auth(std::string_view text);

/// Throws what a server's error means: not_permitted (NOPERM, NOAUTH, WRONGPASS), incompatible (WRONGTYPE: the key is
/// somebody else's), too_large (OOM), unavailable, else io. Does nothing if the reply is none.
/// @param doing  what failed, as it stands behind "cannot": "look keys up"
void throw_if_error(const reply& r, const redis_address& address, std::string_view doing);

}  // namespace bloomery::redis
