// bloomery info FILTER: all that the file knows, and what follows from it; of a keyed filter without its key, too.
// bloomery info --build is in info_build.cpp.
#include "app/signals.hpp"
#include "cli/commands/commands.hpp"
#include "cli/commands/counting.hpp"
#include "cli/commands/error_facts.hpp"
#include "cli/commands/info_page.hpp"
#include "cli/commands/logged.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/commands/window.hpp"
#include "cli/io/output.hpp"
#include "cli/text/numbers.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>
#include <bloomery/fold.hpp>
#include <bloomery/measure.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

namespace bloomery::cli {
namespace {

// Random absent keys, as many as were asked for; none if the filter's secret is not known.
std::optional<measured_rate> measured_by(const info_options& options, const mapped_storage& filter) {
  constexpr std::uint64_t usual_queries = 1'000'000;                // some hundredths of a second
  constexpr std::uint64_t large = std::uint64_t{16} << 30;          // from where it may mean a disk's seek for each
  const bool by_scheme = !filter.info().parameters.scheme.empty();  // keys are hashed one by one, slowly
  if (filter.info().parameters.key_check != 0 && options.secret.empty()) return std::nullopt;
  const std::uint64_t queries =
      options.queries.value_or(filter.size() >= large ? 0
                               : by_scheme            ? queries_of_scheme(filter.info().parameters, usual_queries / 20)
                                                      : usual_queries);
  if (queries == 0) return std::nullopt;
  any_filter asked = open_filter(options.filter, options.secret);
  asked.set_clock([] { return 0; });  // with a window: as of its newest generation
  const measured_rate measured = measure_rate(asked, queries, 0, 0, [] { return stop_signal() == 0; });
  if (stop_signal() != 0) throw interrupted();
  return measured;
}

// The rate with so many hundredths more keys.
double rate_with_more(const params& p, std::uint64_t keys, std::uint64_t percent) {
  const double more = static_cast<double>(keys) * (1 + 0.01 * static_cast<double>(percent));
  return false_positive_rate(p, static_cast<std::uint64_t>(std::llround(std::min(more, 0x1p62))));
}

std::string alarm_text(const audit& count) {
  return fmt::format("{} bits set than its count of keys explains, {}: see bloomery verify",
                     count.deviation() > 0 ? "more" : "fewer", distance_text(count));
}

exit_status info_of_filter(const info_options& options) {
  if (!options.secret.empty()) open_filter(options.filter, options.secret);  // is it the right key?
  // The bits alone are looked at: that takes no key.
  const mapped_storage bits = open_bits(options.filter);
  const file_info& file = bits.info();
  const params& p = file.parameters;
  const inspection pages = options.check_pages ? inspect(options.filter, check::payload) : inspection{};

  const std::optional<measured_rate> measured = measured_by(options, bits);
  if (family_of(p) == family::sealed) return info_of_sealed(options, bits, pages, measured);
  if (family_of(p) == family::windowed) return info_of_window(options, bits, pages, measured);
  const error_facts now = error_facts_of(file, {bits.data(), bits.size()});
  const double fill = static_cast<double>(now.bits.ones) / static_cast<double>(p.geometry.bits / cell_bits_of(p));
  const double rate_now = now.bits.certified_rate;
  // A promise of 100 % cannot be broken, and says nothing.
  const std::uint64_t limit = p.target_rate < 1 ? keys_within(p, p.target_rate) : 0;
  const bool broken = p.target_rate < 1 && rate_now > p.target_rate * 1.01;
  const std::uint64_t left = limit > now.keys && !broken ? limit - now.keys : 0;
  constexpr std::uint64_t more[] = {10, 50, 100};
  const std::optional<log_facts> log =
      p.log_id == 0 ? std::nullopt : std::optional(log_facts_of(options.filter, file, now.keys, options.check_pages));

  output out(STDOUT_FILENO, "standard output");
  if (options.json) {
    nlohmann::ordered_json result = info_head_of_file(options.filter, bits);
    result.update({{"estimated_keys", number_or_null(now.keys_from_bits.value)},
                   {"estimated_keys_sigma", number_or_null(now.keys_from_bits.sigma)},
                   {"fill", fill}});
    add_rates(result, now);
    result.update({{"keys_left", left},
                   {"forecast", nlohmann::ordered_json::array()},
                   {"times_foldable", times_foldable(p)},
                   {"alarm", now.alarming},
                   {"bits_deviation",
                    now.count.conclusive ? number_or_null(now.count.deviation()) : nlohmann::ordered_json(nullptr)},
                   {"clean", file.clean},
                   {"note", file.metadata}});
    if (log) result["log"] = log->json;
    for (const std::uint64_t percent : more) {
      result["forecast"].push_back({{"more_percent", percent}, {"rate", rate_with_more(p, now.keys, percent)}});
    }
    add_counting_facts(result, bits, rate_now);
    write_info(out, options, std::move(result), measured, pages);
  } else {
    info_page page(out);
    const auto line = [&](const std::string& name, const std::string& value) { page.line(name, value); };
    line("filter", options.filter);
    line("kind", p.scheme.empty() ? fmt::format("{}, hash {}, keys {}", p.layout, p.hash, name_of(p.keys))
                                  : "scheme " + p.scheme);
    page.seed_and_secret(p);
    line("size", fmt::format("{} ({}, {} a key)", bytes_text(bits.size()), counted(p.geometry.bits, "bit"),
                             counted(p.geometry.probes, "probe")));
    line("made for", p.capacity == 0 ? "an unknown number of keys"
                                     : fmt::format("{} at {}", counted(p.capacity, "key"), rate_text(p.target_rate)));
    line("inserted", fmt::format("{}, {}", counted(file.counts.inserted, "key"),
                                 file.counts.is_estimate ? "estimated" : "as counted"));
    line("estimated", std::isfinite(now.keys_from_bits.value)
                          ? keys_text(now.keys_from_bits, "distinct key") + ", from the bits"
                          : "no longer possible: all bits are set");
    line("fill", fmt::format("{:.1f} % of the {}s", fill * 100, name_of_cell(p)));
    for (const auto& [name, value] : counting_lines(bits, rate_now)) line(name, value);
    line("error now", rate_text(rate_now) + ", certified from the bits");
    line("predicted", now.keys < beyond_counting
                          ? fmt::format("{} for {}", rate_text(now.predicted), counted(now.keys, "key"))
                          : rate_text(now.predicted) + " for more keys than it can tell");
    page.measured(options, p, measured);
    line("keys left", p.target_rate == 0 ? "unknown"
                      : left > 0
                          ? fmt::format("{} until the error passes {}", count_text(left), rate_text(p.target_rate))
                      : p.target_rate >= 1 ? "none: it is far too small, and says yes to nearly everything"
                      : broken             ? fmt::format("none: the promise of {} is broken", rate_text(p.target_rate))
                                           : "none: it is full, and keeps its promise so far");
    if (now.keys > 0 && rate_now < 1) {
      line(
          "forecast",
          fmt::format("{} with 10 % more keys, {} with 50 %, {} with 100 %", rate_text(rate_with_more(p, now.keys, 10)),
                      rate_text(rate_with_more(p, now.keys, 50)), rate_text(rate_with_more(p, now.keys, 100))));
    }
    if (times_foldable(p) > 0) line("foldable", fmt::format("can be halved {}", times_text(times_foldable(p))));
    if (log) {
      for (const auto& [name, value] : log->lines) line(name, printable(value));
    }
    if (now.alarming) line("ALARM", alarm_text(now.count));
    line("state",
         file.clean ? "clean" : "not closed cleanly: a writer is at work, or was killed; the count is out of date");
    page.end(options, file, pages);
  }
  out.flush();
  const bool log_is_damaged = log && options.check_pages && log->damaged;
  return pages.problems.empty() && !log_is_damaged ? exit_status::found : exit_status::nothing;
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
  const char* const about_filters = options.queries           ? "--queries"
                                    : !options.secret.empty() ? "--secret"
                                                              : given_of(options.server, {}, options.chain);
  if (options.build && about_filters != nullptr) {
    throw error(errc::invalid_argument, {"this is about the program and not about a filter", "--build", "",
                                         about_filters, "leave out one of the two"});
  }
  if (options.build) return info_of_build(options.json);
  if (is_shared(options.filter, options.server, {}, options.chain)) return info_of_shared(options);
  if (options.filter.empty()) {
    throw error(errc::invalid_argument,
                {"what about?", "info", "the name of a FILTER, or --build", "neither", "see bloomery info --help"});
  }
  return info_of_filter(options);
}

}  // namespace bloomery::cli
