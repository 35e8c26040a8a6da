// The secret of a keyed filter: a 128-bit key without which nobody knows which bits a key of the filter sets. What it
// promises, and what not, is in docs/security.md; the hash that takes it is siphash (hash.hpp).
#pragma once

#include <bloomery/export.hpp>

#include <cstdint>
#include <string>

namespace BLOOMERY_EXPORT bloomery {

/// A key of SipHash. As 16 bytes: k0, then k1, each little-endian. All of its 128 bits are to be random:
/// random_secret().
struct secret_key {
  std::uint64_t k0 = 0;
  std::uint64_t k1 = 0;

  friend bool operator==(const secret_key&, const secret_key&) = default;
};

/// A new key from the system's source of randomness, getrandom(2).
/// @throws error io: the system has none to give
///
/// Example:
///     assert(random_secret() != random_secret());
secret_key random_secret();

/// What a file says of its key, so that a wrong one is noticed: the first eight bytes of SipHash-2-4-128 of the 18
/// bytes "bloomery key check", little-endian, and 1 instead of 0. The filter's own hash has other rounds, so that this
/// value is none of its results. Who reads it can test guesses of the key, of which there are 2^128.
///
/// Example:
///     const secret_key key = random_secret();
///     assert(key_check(key) != 0 && key_check(key) == key_check(key));
std::uint64_t key_check(const secret_key& key) noexcept;

/// A check value as it is shown: 16 hexadecimal digits; "none" for 0.
///
/// Example:
///     assert(key_check_text(0x1A2B) == "0000000000001A2B");
std::string key_check_text(std::uint64_t check);

/// Reads a key file: 32 hexadecimal digits, the key's 16 bytes in order, and the end of the line. A pipe will do.
///
/// @param readable_by_others  if not null: set to whether the system lets the file's group or everyone read it
/// @throws error  not_found, not_permitted, io; invalid_argument: anything but 32 hexadecimal digits
secret_key read_secret(const std::string& path, bool* readable_by_others = nullptr);

/// Writes a new key file that only its owner may read (mode 0600), and syncs it.
/// @throws error  already_exists: a key file is never replaced, since with it all its filters would be lost;
///                not_found (no such folder), not_permitted, io
///
/// Example:
///     try {
///       write_secret("users.key", random_secret());
///     } catch (const error& e) {
///       assert(e.code() == errc::already_exists);  // made the last time
///     }
///     const siphash hash(read_secret("users.key"));
void write_secret(const std::string& path, const secret_key& key);

}  // namespace bloomery
