#include "cli/io/times.hpp"

#include "app/numbers.hpp"

#include <bloomery/error.hpp>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <ctime>
#include <utility>

namespace bloomery::cli {
namespace {

using found_time = std::optional<std::uint64_t>;

constexpr std::int64_t end_of_9999 = 253'402'300'800;  // seconds
constexpr std::size_t longest = 100;                   // bytes of a time

// Reads a text from left to right. A failed step leaves it as it was.
class scanner {
 public:
  explicit scanner(std::string_view text) : rest_(text) {}

  bool at_end() const { return rest_.empty(); }

  bool take(std::string_view any) {
    if (rest_.empty() || any.find(rest_.front()) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // Exactly `count` digits.
  bool digits(std::size_t count, std::int64_t& value) {
    if (rest_.size() < count || rest_.substr(0, count).find_first_not_of("0123456789") != std::string_view::npos)
      return false;
    value = 0;
    for (const char digit : rest_.substr(0, count)) value = value * 10 + (digit - '0');
    rest_.remove_prefix(count);
    return true;
  }

  // Digits after a decimal point, as milliseconds; further digits are ignored.
  bool fraction(std::int64_t& milliseconds) {
    milliseconds = 0;
    std::int64_t worth = 100;
    bool any = false;
    for (std::int64_t digit = 0; digits(1, digit); worth /= 10) {
      milliseconds += digit * worth;
      any = true;
    }
    return any;
  }

  // "Z", "+01:00", "+0100", "+01"; the offset in seconds. Nothing at all is UTC.
  bool zone(std::int64_t& offset) {
    offset = 0;
    if (at_end() || take("Zz")) return true;
    const bool is_behind = rest_.front() == '-';
    std::int64_t hours = 0, minutes = 0;
    if (!take("+-") || !digits(2, hours)) return false;
    if (take(":") ? !digits(2, minutes) : !at_end() && !digits(2, minutes)) return false;
    if (hours > 23 || minutes > 59) return false;
    offset = (is_behind ? -1 : 1) * (hours * 3600 + minutes * 60);
    return true;
  }

  bool month_name(std::int64_t& month) {
    constexpr std::string_view names = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const std::size_t at = names.find(rest_.substr(0, 3));
    if (rest_.size() < 3 || at == std::string_view::npos || at % 3 != 0) return false;
    month = static_cast<std::int64_t>(at / 3 + 1);
    rest_.remove_prefix(3);
    return true;
  }

 private:
  std::string_view rest_;
};

struct civil_time {
  std::int64_t year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  std::int64_t offset = 0;  // of the zone, seconds
  std::int64_t milliseconds = 0;
};

found_time within_range(std::int64_t seconds, std::int64_t milliseconds) {
  if (seconds < 0 || seconds >= end_of_9999) return std::nullopt;
  return static_cast<std::uint64_t>(seconds) * 1000 + static_cast<std::uint64_t>(milliseconds);
}

// A second of 60 is a leap second: the first one of the next minute.
found_time moment_of(const civil_time& t) {
  using namespace std::chrono;
  const year_month_day date{year(static_cast<int>(t.year)), month(static_cast<unsigned>(t.month)),
                            day(static_cast<unsigned>(t.day))};
  if (!date.ok() || t.hour > 23 || t.minute > 59 || t.second > 60) return std::nullopt;
  const std::int64_t days = sys_days(date).time_since_epoch().count();
  return within_range(days * 86'400 + t.hour * 3600 + t.minute * 60 + t.second - t.offset, t.milliseconds);
}

found_time read_iso8601(std::string_view text) {
  scanner s(text);
  civil_time t;
  if (!s.digits(4, t.year) || !s.take("-/") || !s.digits(2, t.month) || !s.take("-/") || !s.digits(2, t.day))
    return std::nullopt;
  if (s.at_end()) return moment_of(t);
  if (!s.take("Tt ") || !s.digits(2, t.hour) || !s.take(":") || !s.digits(2, t.minute)) return std::nullopt;
  if (s.take(":")) {
    if (!s.digits(2, t.second)) return std::nullopt;
    if (s.take(".,") && !s.fraction(t.milliseconds)) return std::nullopt;
  }
  s.take(" ");
  if (!s.zone(t.offset) || !s.at_end()) return std::nullopt;
  return moment_of(t);
}

found_time read_clf(std::string_view text) {
  if (text.starts_with('[')) text.remove_prefix(1);
  if (text.ends_with(']')) text.remove_suffix(1);
  scanner s(text);
  civil_time t;
  if (!s.digits(2, t.day) || !s.take("/") || !s.month_name(t.month) || !s.take("/") || !s.digits(4, t.year) ||
      !s.take(":") || !s.digits(2, t.hour) || !s.take(":") || !s.digits(2, t.minute) || !s.take(":") ||
      !s.digits(2, t.second))
    return std::nullopt;
  s.take(" ");
  if (!s.zone(t.offset) || !s.at_end()) return std::nullopt;
  return moment_of(t);
}

// A number with at most 19 digits before the point. @param per_second  units per second
found_time read_epoch(std::string_view text, std::int64_t per_second) {
  const std::size_t point = std::min(text.find('.'), text.size());
  scanner s(text);
  std::int64_t whole = 0, milliseconds = 0;
  const bool may_overflow = point > 19 || (point == 19 && text[0] == '9');
  if (point == 0 || may_overflow || !s.digits(point, whole)) return std::nullopt;
  if (s.take(".") && !s.fraction(milliseconds)) return std::nullopt;
  if (!s.at_end()) return std::nullopt;
  if (per_second == 1) return within_range(whole, milliseconds);
  return within_range(whole / per_second, whole % per_second * 1000 / per_second);
}

found_time read_usual(std::string_view text) {
  if (text.find_first_not_of("0123456789.") == std::string_view::npos) {
    constexpr std::array<std::pair<std::size_t, std::int64_t>, 4> units{
        {{11, 1}, {14, 1000}, {17, 1'000'000}, {19, 1'000'000'000}}};
    for (const auto& [digits, per_second] : units) {
      if (std::min(text.find('.'), text.size()) <= digits) return read_epoch(text, per_second);
    }
    return std::nullopt;
  }
  const found_time time = read_iso8601(text);
  return time ? time : read_clf(text);
}

// strptime knows no fraction: the pattern is cut at each %f.
found_time read_pattern(const std::string& pattern, std::string_view text) {
  std::array<char, longest + 1> copy{};
  text.copy(copy.data(), longest);
  const char* at = copy.data();
  std::tm fields{};
  fields.tm_mday = 1;
  std::int64_t milliseconds = 0;
  for (std::size_t from = 0;;) {
    std::size_t to = from;
    while (to < pattern.size() && pattern.compare(to, 2, "%f") != 0) to += pattern[to] == '%' ? 2 : 1;
    at = ::strptime(at, pattern.substr(from, to - from).c_str(), &fields);
    if (at == nullptr) return std::nullopt;
    if (to >= pattern.size()) break;
    const std::string_view rest(at);
    scanner s(rest);
    if (!s.fraction(milliseconds)) return std::nullopt;
    at += std::min(rest.find_first_not_of("0123456789"), rest.size());
    from = to + 2;
  }
  if (*at != '\0') return std::nullopt;
  const civil_time t{fields.tm_year + 1900, fields.tm_mon + 1, fields.tm_mday,   fields.tm_hour,
                     fields.tm_min,         fields.tm_sec,     fields.tm_gmtoff, milliseconds};
  return moment_of(t);
}

// Refuses a pattern with a conversion that strptime does not have. Flags, as of strftime, are skipped by strptime.
void check_conversions(std::string_view pattern, const std::string& option) {
  constexpr std::string_view conversions = "aAbBcCdDeFgGhHIjklmMnprRStTuUVwWxXyYzZ";
  for (std::size_t at = pattern.find('%'); at != std::string_view::npos; at = pattern.find('%', at)) {
    std::size_t last = std::min(pattern.find_first_not_of("-_0^#", at + 1), pattern.size());
    std::string_view known = conversions;
    if (last < pattern.size() && pattern[last] == 'E')
      known = "cCxXyY", ++last;
    else if (last < pattern.size() && pattern[last] == 'O')
      known = "bBdeHImMSUVwWy", ++last;
    const std::string_view conversion = pattern.substr(at, last + 1 - at);
    at += conversion.size();
    if (conversion == "%%" || conversion == "%f") continue;
    if (last < pattern.size() && known.find(pattern[last]) != std::string_view::npos) continue;
    std::string list = "%%, or % and a letter of";
    for (const char letter : conversions) list += {' ', letter};
    throw error(errc::invalid_argument,
                {"unsupported conversion in a time format", option, list + " f", "'" + std::string(conversion) + "'",
                 conversion.ends_with('s') ? "use epoch for seconds since 1970" : ""});
  }
}

}  // namespace

std::string moment_text(std::uint64_t milliseconds) {
  constexpr std::uint64_t year_9999 = 253'402'300'799'000;
  if (milliseconds > year_9999) return app::count_text(milliseconds / 1000) + " s after 1970";
  const auto seconds = static_cast<std::time_t>(milliseconds / 1000);
  const std::string text = fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(seconds));
  const std::uint64_t rest = milliseconds % 1000;
  return text + (rest == 0 ? "" : fmt::format(".{:03}", rest)) + " UTC";
}

time_format time_format::parse(const std::string& text, const std::string& option) {
  const std::array<std::pair<const char*, kind>, 6> names{{{"usual", kind::usual},
                                                           {"iso8601", kind::iso8601},
                                                           {"rfc3339", kind::iso8601},
                                                           {"clf", kind::clf},
                                                           {"epoch", kind::epoch},
                                                           {"epoch-ms", kind::epoch_ms}}};
  time_format result;
  for (const auto& [name, kind] : names) {
    if (text != name) continue;
    result.kind_ = kind;
    return result;
  }
  result.kind_ = kind::pattern;
  if (text.empty()) throw error(errc::invalid_argument, {"the time format is empty", option, "", "", ""});
  result.pattern_ = text;
  if (text.find('%') == std::string::npos || text.find('\0') != std::string::npos) {
    throw error(errc::invalid_argument,
                {"invalid time format", option,
                 "usual, iso8601, rfc3339, clf, epoch, epoch-ms, or a pattern such as '%d.%m.%Y %H:%M:%S'",
                 "'" + text + "'", ""});
  }
  check_conversions(text, option);
  return result;
}

found_time time_format::read(std::string_view text) const {
  if (text.empty() || text.size() > longest || text.find('\0') != std::string_view::npos) return std::nullopt;
  switch (kind_) {
    case kind::usual: return read_usual(text);
    case kind::iso8601: return read_iso8601(text);
    case kind::clf: return read_clf(text);
    case kind::epoch: return read_epoch(text, 1);
    case kind::epoch_ms: return read_epoch(text, 1000);
    case kind::pattern: return read_pattern(pattern_, text);
  }
  return std::nullopt;
}

std::string time_format::example() const {
  switch (kind_) {
    case kind::usual: return "2026-03-01T12:00:00Z, 01/Mar/2026:12:00:00 +0100 or seconds since 1970";
    case kind::iso8601: return "2026-03-01T12:00:00Z";
    case kind::clf: return "01/Mar/2026:12:00:00 +0100";
    case kind::epoch: return "seconds since 1970";
    case kind::epoch_ms: return "milliseconds since 1970";
    case kind::pattern: return "'" + pattern_ + "', from 1970 on";
  }
  return "";
}

}  // namespace bloomery::cli
