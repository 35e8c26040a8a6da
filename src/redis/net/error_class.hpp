// Classes of server errors, which determine whether the router retries, and their translation to bloomery::error.
#pragma once

#include <bloomery/redis/address.hpp>

#include "redis/net/batch.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace bloomery::redis {

/// How the router reacts to an error.
enum class error_class : std::uint8_t {
  final,        ///< not retried: returned as a reply
  later,        ///< retried after a backoff
  other_node,   ///< MOVED
  ask,          ///< ASK
  load_script,  ///< NOSCRIPT
  reconnect,    ///< the server has changed its role: reconnect
};

error_class error_class_of(std::string_view text);

/// The error itself. Up to version 6, errors inside scripts are wrapped in a sentence:
/// "ERR Error running script (call to f_...): @user_script: 1: -READONLY You can't write against a read only replica."
std::string_view essence_of(std::string_view text);

/// A safe text for an error in reply to AUTH. A server without AUTH, or another service, may repeat the command with
/// the password, so only known texts are shown.
std::string shown_answer_to_auth(std::string_view text);

/// The text of shown_answer_to_auth() for a server that requires no password.
inline constexpr std::string_view no_password_there = "a server without a password";

/// The meaning of a known failure, and a hint.
struct explanation {
  std::string_view begin;  ///< the beginning of the server's error, or of the text of the failure
  std::string_view what;
  std::string_view to_do;
};

/// Null for failures without an explanation.
const explanation* explanation_of(std::string_view problem);

/// Text of a server that is safe in messages: at most 300 bytes, all but printable ASCII as \xNN.
std::string shown_text(std::string_view text);

/// Throws an error of a server as bloomery::error: not_permitted (NOPERM, NOAUTH, WRONGPASS), incompatible (WRONGTYPE:
/// the key has another type), too_large (OOM), unavailable, otherwise io. Does nothing if the reply is not an error.
/// @param doing  the failed operation, as after "cannot": "look up keys"
void throw_if_error(const reply& r, const redis_address& address, std::string_view doing);

}  // namespace bloomery::redis
