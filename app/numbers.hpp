// Human-readable numbers, parsed and formatted: 100M, 64MiB, 1%, 1e-4, "1 in 1000".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bloomery::app {

/// A count: "100", "1_000_000", "100M", "2.5k", "1e9". k, M, G, T are powers of 1000.
/// @throws error invalid_argument: not a whole number from 0 to 2^63; `option` is named in the message
std::uint64_t parse_count(const std::string& text, const std::string& option);

/// A size in bits: "8Mbit" and numbers without a unit are bits; "64MiB", "64MB", "500kB", "10B" are bytes, in powers of
/// 1024 with "i", otherwise of 1000.
/// @throws error invalid_argument
std::uint64_t parse_bits(const std::string& text, const std::string& option);

/// A probability: "0.01", "1e-4", "1%", "1 in 1000", "1/1000".
/// @throws error invalid_argument: not above 0 and below 1
double parse_rate(const std::string& text, const std::string& option);

/// A duration in milliseconds: "24h", "90min", "7d", "30s", "500ms", "1.5h", "2w".
/// @throws error invalid_argument: another text, 0, or more than 1000 years
std::uint64_t parse_duration(const std::string& text, const std::string& option);

/// A moment in milliseconds since 1970, from seconds: "1700000000", "1700000000.250". @throws error invalid_argument
std::uint64_t parse_time(const std::string& text, const std::string& option);

std::string duration_text(std::uint64_t milliseconds);  ///< "24 h", "90 min", "1.5 s": in the largest exact unit
std::string count_text(std::uint64_t count);            ///< 1,234,567
std::string counted(std::uint64_t count, const std::string& noun);  ///< "1 line", "2 lines"
std::string times_text(std::uint64_t times);                        ///< once, twice, 3 times
std::string bytes_text(std::uint64_t bytes);                        ///< 114 MiB, three digits
std::string rate_text(double rate);                                 ///< 1.05%, 0.0128%, 9.99e-06
std::string rate_option(double rate);                               ///< " -p 1%", as commands take it
std::string share_text(double part, double whole);                  ///< "12.3%"; "-" if whole is 0

}  // namespace bloomery::app
