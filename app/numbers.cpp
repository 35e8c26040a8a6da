#include "app/numbers.hpp"

#include <bloomery/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

namespace bloomery::app {
namespace {

[[noreturn]] void refuse(const std::string& option, const std::string& expected, const std::string& text) {
  throw error(errc::invalid_argument, {"invalid value", option, expected, "'" + text + "'", ""});
}

// A decimal number and the rest of the text. Underscores between digits are ignored.
struct number_and_unit {
  long double number = 0;
  std::string unit;
  bool ok = false;
};

number_and_unit read(const std::string& text) {
  std::string plain;
  for (const char c : text) {
    if (c != '_') plain += c;
  }
  // strtold would also accept "nan", "inf", "0x10" and leading spaces.
  if (plain.empty() || (std::isdigit(static_cast<unsigned char>(plain[0])) == 0 && plain[0] != '.')) return {};
  if (plain.size() > 1 && (plain[1] == 'x' || plain[1] == 'X')) return {};
  char* end = nullptr;
  const long double number = std::strtold(plain.c_str(), &end);
  if (end == plain.c_str()) return {};
  std::string unit(end);
  unit.erase(0, unit.find_first_not_of(' ') == std::string::npos ? unit.size() : unit.find_first_not_of(' '));
  return {number, unit, true};
}

// The factor of k, M, G, T, P before `rest`; 0 if there is no such prefix.
long double prefix(const std::string& unit, const std::string& rest, long double base) {
  if (unit == rest) return 1;
  if (unit.size() != rest.size() + 1 || unit.substr(1) != rest) return 0;
  static constexpr std::string_view letters = "kmgtp";
  const auto at = letters.find(static_cast<char>(std::tolower(static_cast<unsigned char>(unit[0]))));
  return at == std::string_view::npos ? 0 : std::pow(base, static_cast<long double>(at + 1));
}

// Rounds, because 0.13 has no exact binary form and 0.13M must be 130000.
long double without_rounding_error(long double value) {
  const long double nearest = std::round(value);
  return std::abs(value - nearest) <= nearest * 1e-16L ? nearest : value;
}

std::uint64_t whole(long double value, const std::string& text, const std::string& option,
                    const std::string& expected) {
  if (!(value >= 0 && value <= 0x1p63L) || value != std::floor(value)) refuse(option, expected, text);
  return static_cast<std::uint64_t>(value);
}

}  // namespace

std::uint64_t parse_count(const std::string& text, const std::string& option) {
  const std::string expected = "a count such as 1000, 100M or 1e9";
  const number_and_unit n = read(text);
  const long double factor = n.ok ? prefix(n.unit, "", 1000) : 0;
  if (factor == 0) refuse(option, expected, text);
  return whole(without_rounding_error(n.number * factor), text, option, expected);
}

std::uint64_t parse_bits(const std::string& text, const std::string& option) {
  const std::string expected = "bits such as 1000000 or 8Mbit, or bytes such as 64MiB or 10MB";
  const number_and_unit n = read(text);
  if (!n.ok) refuse(option, expected, text);
  long double factor = prefix(n.unit, "", 1000);
  if (factor == 0) factor = prefix(n.unit, "bit", 1000);
  if (factor == 0 && n.unit != "iB") factor = 8 * prefix(n.unit, "iB", 1024);
  if (factor == 0) factor = 8 * prefix(n.unit, "B", 1000);
  if (factor == 0) refuse(option, expected, text);
  return whole(std::round(n.number * factor), text, option, expected);
}

double parse_rate(const std::string& text, const std::string& option) {
  const std::string expected = "a probability above 0 and below 1, such as 0.01, 1%, 1e-4 or '1 in 1000'";
  const number_and_unit n = read(text);
  if (!n.ok) refuse(option, expected, text);
  long double rate = n.number;
  if (n.unit == "%") {
    rate /= 100;
  } else if (n.unit.starts_with("in ") || n.unit.starts_with("/")) {
    const std::string rest = n.unit.substr(n.unit.find_first_of(" /") + 1);
    const number_and_unit of = read(rest);
    const long double factor = of.ok ? prefix(of.unit, "", 1000) : 0;
    if (factor == 0) refuse(option, expected, text);
    rate /= of.number * factor;
  } else if (!n.unit.empty()) {
    refuse(option, expected, text);
  }
  const auto result = static_cast<double>(rate);
  if (!(result > 0 && result < 1)) refuse(option, expected, text);
  return result;
}

namespace {

struct time_unit {
  const char* name;
  std::uint64_t milliseconds;
};

// The largest first; weeks are parsed but not printed.
constexpr time_unit time_units[] = {{"w", 7 * 86'400'000}, {"d", 86'400'000}, {"h", 3'600'000},
                                    {"min", 60'000},       {"s", 1000},       {"ms", 1}};

constexpr std::uint64_t thousand_years = std::uint64_t{365'250} * 86'400'000;

}  // namespace

std::uint64_t parse_duration(const std::string& text, const std::string& option) {
  const std::string expected = "a duration such as 24h, 90min, 7d, 30s or 500ms, at most 1000 years";
  const number_and_unit n = read(text);
  const auto* unit = std::find_if(std::begin(time_units), std::end(time_units),
                                  [&](const time_unit& u) { return n.ok && n.unit == u.name; });
  if (unit == std::end(time_units)) refuse(option, expected, text);
  const long double milliseconds = std::round(n.number * static_cast<long double>(unit->milliseconds));
  if (!(milliseconds >= 1 && milliseconds <= static_cast<long double>(thousand_years))) refuse(option, expected, text);
  return static_cast<std::uint64_t>(milliseconds);
}

std::uint64_t parse_time(const std::string& text, const std::string& option) {
  const std::string expected = "seconds since 1970, such as 1700000000 or 1700000000.25";
  const number_and_unit n = read(text);
  const long double milliseconds = n.ok && n.unit.empty() ? std::round(n.number * 1000) : -1;
  if (!(milliseconds >= 0 && milliseconds <= 0x1p62L)) refuse(option, expected, text);
  return static_cast<std::uint64_t>(milliseconds);
}

std::string duration_text(std::uint64_t milliseconds) {
  for (const time_unit& u : time_units) {
    if (u.milliseconds > 86'400'000 || (u.milliseconds > milliseconds && u.milliseconds > 1)) continue;
    if (milliseconds % u.milliseconds == 0 || u.milliseconds <= 1000) {
      return fmt::format("{:.12g} {}", static_cast<double>(milliseconds) / static_cast<double>(u.milliseconds), u.name);
    }
  }
  return fmt::format("{} ms", milliseconds);
}

std::string count_text(std::uint64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3;) {
    at -= 3;
    text.insert(at, 1, ',');
  }
  return text;
}

std::string counted(std::uint64_t count, const std::string& noun) {
  return count_text(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string times_text(std::uint64_t times) {
  return times == 1 ? "once" : times == 2 ? "twice" : count_text(times) + " times";
}

std::string bytes_text(std::uint64_t bytes) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 999.5 would print as 1e+03.
  while (value >= 999.5 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.3g} {}", value, units[unit]);
}

std::string rate_text(double rate) {
  // 9.9999e-5 is 0.01% to three digits.
  if (rate != 0 && rate < 9.995e-5) return fmt::format("{:.3g}", rate);
  return fmt::format("{:.3g}%", rate * 100);
}

std::string rate_option(double rate) {
  return rate < 1e-4 ? fmt::format(" -p {:g}", rate) : fmt::format(" -p {:g}%", 100 * rate);
}

std::string share_text(double part, double of) { return of == 0 ? "-" : fmt::format("{:.3g}%", part / of * 100); }

}  // namespace bloomery::app
