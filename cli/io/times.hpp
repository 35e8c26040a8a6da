// Times in records, as milliseconds since 1970.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bloomery::cli {

/// How far the time of a record, or the newest generation of a window, may be ahead of this machine's clock: a day, in
/// milliseconds. Clocks differ, and local times without a zone are read as UTC.
inline constexpr std::uint64_t most_ahead = 24 * 3600 * 1000;

/// "2023-11-14 22:13:20 UTC" for milliseconds since 1970; the number of seconds after the year 9999.
std::string moment_text(std::uint64_t milliseconds);

/// Reads the times of one format. A time without a zone is UTC.
///
///   usual      any of the following; the default
///   iso8601    2026-03-01T12:00:00Z, 2026-03-01 12:00:00.250+01:00, 2026/03/01 12:00, 2026-03-01; also named rfc3339
///   clf        01/Mar/2026:12:00:00 +0100, brackets or not: the common log format
///   epoch      seconds since 1970, with a fraction or not
///   epoch-ms   milliseconds since 1970
///   a pattern  with the conversions of strptime(3) except %s, and %f for a fraction of a second
///
/// `usual` takes a whole number by its size: below 1e11 seconds, below 1e14 milliseconds, below 1e17 microseconds,
/// otherwise nanoseconds.
class time_format {
 public:
  time_format() = default;

  /// @throws error invalid_argument: not a name of a format, and no % in it
  static time_format parse(const std::string& text, const std::string& option);

  /// Empty if the text does not have this format, or if the time is before 1970 or after 9999.
  std::optional<std::uint64_t> read(std::string_view text) const;

  /// For messages: "2026-03-01T12:00:00Z".
  std::string example() const;

 private:
  enum class kind { usual, iso8601, clf, epoch, epoch_ms, pattern };

  kind kind_ = kind::usual;
  std::string pattern_;
};

}  // namespace bloomery::cli
