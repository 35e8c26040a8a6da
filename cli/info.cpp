// bloomery info FILTER: all that the file knows, and what follows from it. bloomery info --build is in info_build.cpp.
#include "commands.hpp"
#include "numbers.hpp"
#include "output.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace bloomery::cli {
namespace {

nlohmann::ordered_json number_or_null(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json name_or_null(const std::string& name) {
  return name.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(name);
}

exit_status info_of_filter(const info_options& options) {
  const any_filter filter = any_filter::open(options.filter);
  const file_info& file = *filter.opened_from();
  const params& p = filter.parameters();
  const inspection pages = options.check_pages ? inspect(options.filter, check::payload) : inspection{};

  const double fill = filter.fill_ratio();
  const double estimate = filter.approximate_size();
  std::uint64_t keys = distinct_keys(p, file.inserted);
  // The count of a writer that was killed is out of date, and far past capacity hardly a key is counted; the bits know
  // more.
  if (!file.clean || fill > 0.75)
    keys = std::max(keys, static_cast<std::uint64_t>(std::llround(std::min(estimate, 0x1p62))));
  const double rate_now = filter.false_positive_rate(keys);
  // A promise of 100 % cannot be broken, and says nothing.
  const std::uint64_t limit = p.target_rate < 1 ? keys_within(p, p.target_rate) : 0;
  const std::uint64_t left = limit > keys ? limit - keys : 0;

  output out(STDOUT_FILENO, "standard output");
  if (options.json) {
    nlohmann::ordered_json result = {{"filter", options.filter},
                                     {"layout", name_or_null(p.layout)},
                                     {"scheme", name_or_null(p.scheme)},
                                     {"hash", name_or_null(p.hash)},
                                     {"keys", name_of(p.keys)},
                                     {"seed", p.seed},
                                     {"bits", p.geometry.bits},
                                     {"bytes", filter.byte_size()},
                                     {"file_bytes", file.file_bytes},
                                     {"probes", p.geometry.probes},
                                     {"capacity", p.capacity},
                                     {"target_rate", p.target_rate},
                                     {"inserted", file.inserted},
                                     {"estimated_keys", number_or_null(estimate)},
                                     {"fill", fill},
                                     {"rate_now", rate_now},
                                     {"keys_left", left},
                                     {"clean", file.clean},
                                     {"note", file.metadata}};
    if (options.check_pages) result["problems"] = pages.problems;
    out.write(json_line(result));
  } else {
    const auto line = [&](const char* name, const std::string& value) {
      out.write(fmt::format("{:<14}{}\n", name, value));
    };
    line("filter", options.filter);
    line("kind", p.scheme.empty() ? fmt::format("{}, hash {}, keys {}", p.layout, p.hash, name_of(p.keys))
                                  : "scheme " + p.scheme);
    if (p.seed != 0) line("seed", std::to_string(p.seed));
    line("size", fmt::format("{} ({} bits, {} probes a key)", bytes_text(filter.byte_size()),
                             count_text(p.geometry.bits), p.geometry.probes));
    line("made for", p.capacity == 0 ? "an unknown number of keys"
                                     : fmt::format("{} keys at {}", count_text(p.capacity), rate_text(p.target_rate)));
    line("inserted", fmt::format("{} keys, as counted", count_text(file.inserted)));
    line("estimated", std::isfinite(estimate)
                          ? fmt::format("{} distinct keys, from the bits",
                                        count_text(static_cast<std::uint64_t>(std::llround(estimate))))
                          : "no longer possible: all bits are set");
    line("fill", fmt::format("{:.1f} % of the bits", fill * 100));
    line("error now", rate_text(rate_now));
    line("keys left", p.target_rate == 0 ? "unknown"
                      : left > 0
                          ? fmt::format("{} until the error passes {}", count_text(left), rate_text(p.target_rate))
                      : p.target_rate >= 1 ? "none: it is far too small, and says yes to nearly everything"
                      : rate_now <= p.target_rate * 1.01
                          ? "none: it is full, and keeps its promise so far"
                          : fmt::format("none: the promise of {} is broken", rate_text(p.target_rate)));
    line("state",
         file.clean ? "clean" : "not closed cleanly: a writer is at work, or was killed; the count is out of date");
    if (!file.metadata.empty()) line("note", printable(file.metadata));
    if (options.check_pages) {
      line("pages", pages.problems.empty() ? "all match their checksums" : "");
      for (const std::string& problem : pages.problems) out.write("  " + problem + "\n");
    }
  }
  out.flush();
  return pages.problems.empty() ? exit_status::found : exit_status::nothing;
}

}  // namespace

exit_status info(const info_options& options) {
  if (options.build && !options.filter.empty()) {
    throw error(errc::invalid_argument, {"this is about the program and not about a filter", "--build", "no FILTER",
                                         "'" + options.filter + "'", "leave out one of the two"});
  }
  if (options.build && options.check_pages) {
    throw error(errc::invalid_argument,
                {"there are no pages to check in a program", "--build", "", "--check", "leave out one of the two"});
  }
  if (options.build) return info_of_build(options.json);
  if (options.filter.empty()) {
    throw error(errc::invalid_argument,
                {"what about?", "info", "the name of a FILTER, or --build", "neither", "see bloomery info --help"});
  }
  return info_of_filter(options);
}

}  // namespace bloomery::cli
