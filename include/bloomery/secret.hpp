// secret_key: the 128-bit secret of a keyed filter. Without it, the bits of a key cannot be predicted.
// docs/security.md describes what this protects against; siphash (hash.hpp) is the hash that uses it.
#pragma once

#include <bloomery/detail/export.hpp>

#include <cstdint>
#include <string>

namespace BLOOMERY_EXPORT bloomery {

/// A key of SipHash. As 16 bytes: k0, then k1, each little-endian. All 128 bits should be random: use random_secret().
struct secret_key {
  std::uint64_t k0 = 0;
  std::uint64_t k1 = 0;

  friend bool operator==(const secret_key&, const secret_key&) = default;
};

/// A new key from the system's source of randomness, getrandom(2).
/// @throws error io: no randomness is available
///
/// Example:
///     assert(random_secret() != random_secret());
secret_key random_secret();

/// The check value of a secret, stored in files to detect a wrong secret: the first eight bytes of SipHash-2-4-128 of
/// the 18 bytes "bloomery key check", little-endian, with 1 instead of 0. The filter's hash uses other round counts, so
/// this value is not one of its results. A reader of the file could only use it to test guesses among 2^128 keys.
///
/// Example:
///     const secret_key key = random_secret();
///     assert(key_check(key) != 0 && key_check(key) == key_check(key));
std::uint64_t key_check(const secret_key& key) noexcept;

/// A check value as text: 16 hexadecimal digits; "none" for 0.
///
/// Example:
///     assert(key_check_text(0x1A2B) == "0000000000001A2B");
std::string key_check_text(std::uint64_t check);

/// Reads a key file: 32 hexadecimal digits, which are the 16 bytes of the key in order, and a newline. The file may be
/// a pipe.
///
/// @param readable_by_others  if not null: set to whether the file's group or everyone may read it
/// @throws error  not_found, not_permitted, io; invalid_argument: anything but 32 hexadecimal digits
secret_key read_secret(const std::string& path, bool* readable_by_others = nullptr);

/// Writes a new key file that only its owner may read (mode 0600), and syncs it.
/// @throws error  already_exists: a key file is never replaced, because that would make all its filters unusable;
///                not_found (no such directory), not_permitted, io
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
