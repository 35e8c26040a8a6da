// The parameters that C programs fill in, checked.
#include "c/boundary.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

namespace bloomery::c {

std::optional<secret_key> secret_of(const std::uint8_t* secret) {
  if (secret == nullptr) return std::nullopt;
  secret_key key;
  static_assert(sizeof key == 16);  // k0, then k1, each little-endian
  std::memcpy(&key, secret, sizeof key);
  return key;
}

params params_of(const bloomery_params* given) {
  const std::size_t size = wanted(given, "params").size;
  // A later header has a longer struct. Its additional fields have to be 0: this library does not know them.
  bloomery_params all = BLOOMERY_PARAMS(0, 0);
  constexpr std::size_t shortest = offsetof(bloomery_params, window_ms) + sizeof all.window_ms;  // of version 0
  if (size < shortest) {
    throw error(errc::invalid_argument,
                {"the struct is too short", "params.size", std::to_string(shortest) + " or more", std::to_string(size),
                 "initialize it with BLOOMERY_PARAMS"});
  }
  std::memcpy(&all, given, std::min(size, sizeof all));
  const auto* const more = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t i = sizeof all; i < size; ++i) {
    if (more[i] == 0) continue;
    throw error(errc::invalid_argument, {"a field that only a later version of the library knows is set", "params", "",
                                         "", "use a later version of libbloomery_c, or leave the field 0"});
  }
  if (all.keys > BLOOMERY_U64) {
    throw error(errc::invalid_argument, {"unknown kind of keys", "params.keys", "BLOOMERY_BYTES or BLOOMERY_U64",
                                         std::to_string(all.keys), hint::none});
  }
  if (all.window_keys != 0 && all.window_ms != 0) {
    throw error(errc::invalid_argument, {"a window has a number of keys or a time",
                                         "params.window_keys and params.window_ms", "one of them", "both", hint::none});
  }
  const auto text = [](const char* name) { return std::string(name == nullptr ? "" : name); };
  params p;
  p.layout = text(all.layout);
  p.scheme = text(all.scheme);
  p.hash = text(all.hash);
  p.keys = all.keys == BLOOMERY_U64 ? key_kind::u64le : key_kind::bytes;
  p.seed = all.seed;
  p.capacity = all.capacity;
  p.target_fpr = all.target_fpr;
  p.secret = secret_of(all.secret);
  if (all.window_keys != 0) p.extra = window_of_keys(all.window_keys);
  if (all.window_ms != 0) p.extra = window_of_milliseconds(all.window_ms);
  return p;
}

params complete_params_of(const bloomery_params* given) {
  params p = params_of(given);
  return complete(std::move(p), given->prefer_memory != 0 ? preference::memory : preference::speed);
}

}  // namespace bloomery::c
