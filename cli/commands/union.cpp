// bloomery union and intersect: combine filters bit by bit, without their keys.
//
//   $ bloomery union -o week.bloom mon.bloom tue.bloom wed.bloom
//   $ bloomery union -o redis://cache/all redis://cache/users users.bloom
//
// The union contains every key of each filter. The intersection contains every common key, and has more false positives
// than a filter built from those keys. Combining files needs no secret.
//
// Exit status 3: the result was written, but exceeds its target FPR.
#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/common.hpp"
#include "cli/commands/fpr_watch.hpp"
#include "cli/commands/grammar.hpp"
#include "cli/commands/key_changes.hpp"
#include "cli/commands/open_handle.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/commands/window.hpp"
#include "cli/io/whole_file.hpp"

#include <bloomery/error.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/redis/handle.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace bloomery::cli {
namespace {

struct combine_options {
  std::string output;
  std::vector<std::string> filters;
  std::string secret;     ///< for shared filters; combining files needs none
  server_options server;  ///< for shared filters, which can be united but not intersected
  file_check check = file_check::payload;
  bool quiet = false;
  bool json = false;
};

struct operation {
  const char* verb;
  const char* name;
  const char* keys;  // noun for the keys of the result
  bool intersects;
};

constexpr operation uniting = {"union", "union", "key", false};
constexpr operation intersecting = {"intersect", "intersection", "common key", true};

struct combined {
  any_filter filter;
  estimate common_keys = {};              // of an intersection; an upper bound for three or more filters
  std::optional<redis_params> like = {};  // parameters of the new filter, if the output is on servers
  std::string note = {};                  // comment of the first file
};

// Refuses options of servers for files, and certificates without TLS.
server_options options_for_one(const std::string& name, server_options all) {
  if (!redis_address::is_one(name)) return {};
  if (!redis_address::parse(name).tls) all.authorities = all.certificate = all.certificate_key = "";
  return all;
}

std::unique_ptr<filter_handle> open_one(const combine_options& options, std::size_t i) {
  const std::string& name = options.filters[i];
  return open_handle({.name = name,
                      .secret = redis_address::is_one(name) ? options.secret : "",
                      .server = options_for_one(name, options.server),
                      .facts_only = true,
                      .check = options.check});
}

any_filter copy_of(filter_handle& filter, const std::string& name) {
  if (filter.capabilities().has_cells) return filter.copy();
  throw error(errc::incompatible,
              {"a Guava chain cannot be combined with other filters", name, "", "", "build a filter from its keys"});
}

// Returns the version of the output.
file_version check_options(const combine_options& options, const operation& how) {
  std::vector<std::string> names = options.filters;
  names.push_back(options.output);
  if (how.intersects) {
    for (const std::string& name : names) refuse_shared(name, how.verb);
  }
  if (options.filters.size() < 2) {
    throw error(errc::invalid_argument,
                {std::string("the ") + how.name + " needs at least two filters", "FILTER", "", "", ""});
  }
  if (std::any_of(names.begin(), names.end(), redis_address::is_one)) {
    refuse_needless(options.server, names);
  } else {
    check_server_options(options.output, options.server);
    if (!options.secret.empty()) {
      throw error(errc::invalid_argument,
                  {"combining files needs no secret", "--secret", "", "", "leave out --secret"});
    }
  }
  if (redis_address::is_one(options.output)) return {};
  const file_version version = check_replaceable(options.output, "--output");
  check_can_write(options.output);
  check_locks(options.output);
  return version;
}

// Combines the filters in memory. Nothing is written before all have been read and compared.
combined combine(const combine_options& options, const operation& how) {
  const std::string first_name = shown_name(options.filters.front());
  const std::unique_ptr<filter_handle> first = open_one(options, 0);
  const bool on_servers = first->capabilities().is_remote;
  combined all{copy_of(*first, first_name)};
  const params& p = all.filter.parameters();
  all.filter.set_clock([] { return std::uint64_t{0}; });  // for a window of time: as of its newest generation
  if (redis_address::is_one(options.output)) {
    all.like = shared_like(all.filter, first_name, {});
    if (const redis_filter* shared = redis::shared_filter_of(*first)) all.like->shards = shared->parameters().shards;
    if (p.key_check != 0) all.like->filter.secret = secret_of(options.secret);
  }
  const file_info* const from = on_servers ? nullptr : first->local()->opened_from();  // null: copied from a table
  if (from != nullptr) all.note = from->metadata;
  if (how.intersects) all.common_keys = all.filter.estimated_keys();
  for (std::size_t i = 1; i < options.filters.size(); ++i) {
    if (stop_signal() != 0) throw interrupted();
    const std::unique_ptr<filter_handle> next = open_one(options, i);
    std::optional<any_filter> copy;  // for filters on servers, or if the count must be estimated
    const any_filter* bits = next->local();
    const std::string name = shown_name(options.filters[i]);
    if (bits == nullptr || (bits->opened_from() != nullptr && !bits->opened_from()->clean))
      bits = &copy.emplace(copy_of(*next, name));
    if (!how.intersects) {
      try {
        all.filter.merge(*bits);
      } catch (const error& e) {
        if (e.code() == errc::incompatible) check_compatible(first_name, p, name, bits->parameters());
        throw in_filter(e, name);
      }
      continue;
    }
    check_compatible(first_name, p, name, bits->parameters());
    refuse_unless_plain(p, first_name, how.name, "intersect plain filters of their keys");
    const estimate both = estimate_overlap(p, count_shared(first->local()->bytes(), bits->bytes())).keys_both;
    // The overlap with a full filter is unknown; the keys of the first filter are an upper bound.
    if (std::isfinite(both.sigma) && both.value < all.common_keys.value) all.common_keys = both;
    all.filter.intersect(*bits);
  }
  if (stop_signal() != 0) throw interrupted();
  return all;
}

exit_status write_file(const combine_options& options, const operation& how, const combined& all,
                       const file_version& replaced) {
  const params& p = all.filter.parameters();
  const fill_statistics now = measure_fill(p, all.filter.bytes());
  const std::optional<window_facts> window = all.filter.window();
  const estimate keys = how.intersects ? all.common_keys : all.filter.estimated_keys();
  const bool known = std::isfinite(keys.value);
  const bool at_most = how.intersects && options.filters.size() > 2;
  const bool noise = how.intersects && known && (keys.is_noise() || now.ones == 0);
  key_counts counts = all.filter.counts();
  if (how.intersects) {
    const double certain = known ? keys.value : std::max(estimated_keys(p, p.geometry.bits - 1).value, 1.0);
    counts = {.inserted = counted_of_estimate(p, certain), .is_estimate = true};
  }
  point_of_no_return();
  save_file(options.output, p, all.filter.bytes(), counts,
            create_options{.metadata = all.note, .expected = replaced, .no_lock = no_lock()});

  fpr_watch watch(options.output);
  watch.judge(p, now.current_fpr, window ? counted(window->keys_held(), "key") + " in the window" : "");
  if (options.json) {
    nlohmann::ordered_json result = {{"filter", options.output}, {"of", options.filters.size()}};
    if (window) {
      result["window"] = window_json(*window);
    } else {
      result.update({{"keys", number_or_null(keys.value)},
                     {"keys_sigma", number_or_null(keys.sigma)},
                     {"keys_at_most", at_most},
                     {"keys_noise", noise},
                     {"fill", all.filter.fill_ratio()}});
    }
    result.update({{"rate", now.current_fpr}, {"capacity", p.capacity}, {"target_rate", p.target_fpr}});
    add_verdict(result, watch.judgement());
    print_result(result);
  }
  if (options.quiet) return watch.end();
  const std::string number = window   ? "keys stay in their generation; at most " + counted(window->keys_held(), "key")
                             : !known ? "all bits are set"
                             : noise  ? "too few common keys to estimate their number"
                                      : (at_most ? "at most " : "") + keys_text(keys, how.keys);
  say(fmt::format("{}: {} of {} filters: {}; current FPR {}", options.output, how.name, options.filters.size(), number,
                  rate_text(now.current_fpr)));
  return watch.end();
}

exit_status write_to_servers(const combine_options& options, const combined& all) {
  const redis_address address = redis_address::parse(options.output);
  shared_copy copy = put_on_servers(address, all.filter, *all.like, {}, options.server, options.secret);
  // The union is stored, so a failure to count its keys is only a warning.
  keys_done done;
  filter_summary now;
  try {
    now = redis::summary_of(copy.filter.info());
  } catch (const error& e) {
    count_failed(done, address.text(), e);
    if (done.failure) throw error(*done.failure);
  }
  const std::unique_ptr<filter_handle> filter = redis::make_handle(std::move(copy.filter));
  fpr_watch watch(address.text());
  watch.judge(*filter, now);
  const params& p = filter->parameters();
  if (options.json) {
    const nlohmann::ordered_json unknown = nullptr;
    nlohmann::ordered_json result = {{"filter", address.text()},
                                     {"made", copy.made},
                                     {"of", options.filters.size()},
                                     {"keys", now.insert_count ? nlohmann::ordered_json(*now.insert_count) : unknown},
                                     {"rate", now.fpr ? nlohmann::ordered_json(*now.fpr) : unknown},
                                     {"capacity", p.capacity},
                                     {"target_rate", p.target_fpr}};
    add_verdict(result, watch.judgement());
    print_result(result);
  } else if (!options.quiet && now.fpr) {
    say(fmt::format("{}: union of {} filters{}: {}; current FPR {}", address.text(), options.filters.size(),
                    copy.made ? "" : " and the existing filter",
                    now.insert_count ? "about " + counted(*now.insert_count, "key") : "all bits are set",
                    rate_text(*now.fpr)));
  }
  return watch.end();
}

exit_status run(const combine_options& options, const operation& how) {
  const file_version replaced = check_options(options, how);
  const combined all = combine(options, how);
  return all.like ? write_to_servers(options, all) : write_file(options, how, all, replaced);
}

exit_status unite(const combine_options& options) { return run(options, uniting); }
exit_status intersect(const combine_options& options) { return run(options, intersecting); }

void add_combine(command_line& line, const char* name, const char* help, const char* example,
                 exit_status (*act)(const combine_options&)) {
  command& c = line.root.subcommand(name, help);
  auto& o = line.options_of(c, act);
  c.option("-o,--output", o.output, "FILE", "new file; an existing file is replaced once the new one is complete")
      .required()
      .file();
  c.positional("FILTER", o.filters, "two or more filters of the same kind and size").required().file();
  add_no_lock(c);
  add_no_verify(c, o.check);
  c.flag("-q,--quiet", o.quiet, "print only errors and warnings").group(of_all_verbs);
  c.flag("--json", o.json, "print the result as one JSON object").group(of_all_verbs);
  if (act == unite) {
    c.find("--output")->describe("new file, or address (a filter that exists there is extended)");
    c.find("FILTER")->describe("two or more filters of the same kind and size: files or addresses");
    add_secret(c, o.secret);
    add_server(c, o.server);
  }
  c.example(example);
  c.footer("Exit status: 0 if the filter was created, 2 on error, 3 if it was created but exceeds its target FPR.");
}

}  // namespace

void add_union(command_line& line) {
  add_combine(line, "union", "create a filter with the keys of several filters",
              "bloomery union -o week.bloom mon.bloom tue.bloom", unite);
}

void add_intersect(command_line& line) {
  add_combine(line, "intersect", "create a filter with the keys that several filters have in common",
              "bloomery intersect -o both.bloom mon.bloom tue.bloom", intersect);
}

}  // namespace bloomery::cli
