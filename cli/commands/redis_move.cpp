// bloomery pull, push and union: filters between files and servers, bit for bit.
//
//   $ bloomery pull redis://cache/users -o users.bloom
//   $ bloomery push users.bloom redis://other/users
//   $ bloomery union -o redis://cache/all redis://cache/users users.bloom
//
// A file has the bits of a shared filter's shards, laid end to end. What goes to a server is united with what is there.
#include "cli/commands/shared_filter.hpp"

#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/counting.hpp"
#include "cli/commands/window.hpp"
#include "cli/io/output.hpp"
#include "cli/io/whole_file.hpp"
#include "cli/text/error_text.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>
#include <bloomery/layout_facts.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bloomery::cli {
namespace {

// Counters of two filters would have to be added at one blow, on all servers.
void refuse_counters(const params& p, const std::string& name) {
  refuse_counting(name, p, "counting filters are pulled, and not put back", "add their keys");
}

// The same filter on servers.
redis_params shared_like(const any_filter& filter, const std::string& file, const sharing_options& sharing) {
  redis_params p;
  p.filter = filter.parameters();
  const params& f = p.filter;
  refuse_counters(f, file);
  const layout_facts* facts = find_layout_facts(f.layout);
  if (facts == nullptr || !facts->may_be_shared) {
    throw error(errc::incompatible,
                {"a shared filter has all bits of a key in one cache line", file, "layout split_block512 or blocked",
                 kind_text(f), "build it anew with --layout split_block512"});
  }
  p.filter.log_id = 0;
  p.shards = sharing.shards.value_or(0);
  if (sharing.milliseconds) p.expires_in = std::chrono::milliseconds(*sharing.milliseconds);
  return p;
}

any_filter load(const std::string& name, const std::string& secret) {
  const inspection seen = inspect(name);
  if (seen.usable) say_if_dirty(name, seen.info);
  return any_filter::load(name, secret_of(secret));
}

struct fetched_filter {
  any_filter filter;
  std::optional<redis_params> shared = {};  // of one that comes from servers
};

fetched_filter fetched(const std::string& name, const std::string& secret, const server_options& server) {
  if (!redis_address::is_one(name)) return {load(name, secret)};
  redis_filter there = open_shared(redis_address::parse(name), server, secret);
  return {there.pull(), there.parameters()};
}

std::string shown_name(const std::string& name) {
  return redis_address::is_one(name) ? redis_address::parse(name).text() : name;
}

void check_reachable_output(const std::string& path) {
  check_replaceable(path, "-o");
  check_can_write(path);
}

nlohmann::ordered_json size_json(const params& p) {
  return {{"bits", p.geometry.bits},
          {"bytes", bytes_for(p.geometry.bits)},
          {"layout", p.layout},
          {"capacity", p.capacity},
          {"target_rate", p.target_fpr}};
}

// Puts a filter on servers: into the one that is there, or else into one that is made `like` this. Writes only when all
// has been read and compared; who fails then says what may be there.
redis_filter put(const redis_address& address, const any_filter& filter, const redis_params& like,
                 const sharing_options& sharing, const server_options& server, const std::string& secret, bool& made) {
  std::optional<redis_filter> to = find_shared(address, server, secret);
  made = !to;
  if (to) refuse_another_sharing(address, to->parameters(), false, sharing, server);
  try {
    if (!to) to = redis_filter::create(address, like, options_for(address, server, secret, false));
    to->merge(filter);
  } catch (const error& e) {
    if (e.code() == errc::incompatible || e.code() == errc::invalid_argument) throw;  // before anything was written
    error_text text = e.text();
    const bool may_be_tried = e.code() != errc::damaged && e.code() != errc::locked;
    std::string to_do = hint_text(e);
    to_do += fmt::format("{}{} may have a part of the new keys by now{}{}", to_do.empty() ? "" : "; ", address.text(),
                         made ? ", or none" : " beside what it had",
                         may_be_tried ? "; run it again, which does no harm" : "");
    text.hint = std::move(to_do);
    throw error(e.code(), text);
  }
  return std::move(*to);
}

// All the filters as one, here: none is written to before all have been read.
fetched_filter united(const combine_options& options) {
  const std::string& first = options.filters.front();
  fetched_filter all = fetched(first, options.secret, options.server);
  const params& p = all.filter.parameters();
  refuse_window(p, shown_name(first), "union");
  if (redis_address::is_one(options.output)) refuse_counters(p, shown_name(first));
  for (std::size_t i = 1; i < options.filters.size(); ++i) {
    if (stop_signal() != 0) throw interrupted();
    const any_filter other = fetched(options.filters[i], options.secret, options.server).filter;
    check_compatible(shown_name(first), p, shown_name(options.filters[i]), other.parameters());
    all.filter.merge(other);
  }
  if (stop_signal() != 0) throw interrupted();
  return all;
}

exit_status unite_into_file(const combine_options& options) {
  check_reachable_output(options.output);
  const any_filter all = united(options).filter;
  point_of_no_return();
  all.save(options.output);
  const params& p = all.parameters();
  const estimate keys = all.estimated_keys();
  const double rate = all.current_fpr();
  if (options.json) {
    print_result({{"filter", options.output},
                  {"of", options.filters.size()},
                  {"keys", number_or_null(keys.value)},
                  {"keys_sigma", number_or_null(keys.sigma)},
                  {"rate", rate},
                  {"capacity", p.capacity},
                  {"target_rate", p.target_fpr}});
  } else if (!options.quiet) {
    say(fmt::format("{}: the union of {} filters: {}; error {}", options.output, options.filters.size(),
                    keys_text(keys, "key"), rate_text(rate)));
  }
  return exit_status::found;
}

exit_status unite_into_shared(const combine_options& options) {
  const redis_address address = redis_address::parse(options.output);
  fetched_filter from = united(options);
  if (!from.shared) from.shared = shared_like(from.filter, options.filters.front(), {});
  bool made = false;
  redis_filter all = put(address, from.filter, *from.shared, {}, options.server, options.secret, made);
  const redis_info now = all.info();
  warn_if_overfull(address, now);
  if (options.json) {
    print_result({{"filter", address.text()},
                  {"made", made},
                  {"of", options.filters.size()},
                  {"keys", now.inserted},
                  {"rate", now.rate_now},
                  {"capacity", now.parameters.filter.capacity},
                  {"target_rate", now.parameters.filter.target_fpr}});
  } else if (!options.quiet) {
    say(fmt::format("{}: the union of {} filters{}: about {}; error {}", address.text(), options.filters.size(),
                    made ? "" : ", and of what was there", counted(now.inserted, "key"), rate_text(now.rate_now)));
  }
  return exit_status::found;
}

}  // namespace

exit_status unite_shared(const combine_options& options) {
  if (options.filters.size() < 2) {
    throw error(errc::invalid_argument,
                {"nothing to combine with for the union", "FILTER", "two or more filters", "one", ""});
  }
  std::vector<std::string> all = options.filters;
  all.push_back(options.output);
  refuse_needless(options.server, all);
  return redis_address::is_one(options.output) ? unite_into_shared(options) : unite_into_file(options);
}

exit_status pull(const pull_options& options) {
  refuse_needless(options.server, {&options.address, 1});
  const redis_address address = redis_address::parse(options.address);
  if (redis_address::is_one(options.output)) {
    throw error(errc::invalid_argument, {"pull makes a file", "-o", "a file's name", "an address",
                                         "union -o ADDR puts one shared filter into another"});
  }
  check_reachable_output(options.output);
  check_not_the_key(options.output, "-o", options.secret);
  redis_filter filter = open_shared(address, options.server, options.secret, options.quiet);
  check_room(options.output, bytes_for(filter.parameters().filter.geometry.bits));
  const any_filter copy = filter.pull();
  point_of_no_return();
  copy.save(options.output, options.note);
  const params& p = copy.parameters();
  if (options.json) {
    nlohmann::ordered_json result = {{"filter", options.output}, {"of", address.text()}};
    result.update(size_json(p));
    print_result(result);
  } else if (!options.quiet) {
    say(fmt::format("{}: {}; it was made for {}", options.output, address.text(), size_text(p)));
  }
  return exit_status::found;
}

exit_status push(const push_options& options) {
  refuse_needless(options.server, {&options.address, 1});
  const redis_address address = redis_address::parse(options.address);
  refuse_shared(options.file, "push");
  const any_filter filter = load(options.file, options.secret);
  bool made = false;
  const redis_filter to = put(address, filter, shared_like(filter, options.file, options.sharing), options.sharing,
                              options.server, options.secret, made);
  const redis_params& p = to.parameters();
  if (options.json) {
    nlohmann::ordered_json result = {{"filter", address.text()}, {"of", options.file}, {"made", made}};
    result.update(size_json(p.filter));
    result["shards"] = p.shards;
    print_result(result);
  } else if (!options.quiet) {
    say(fmt::format("{}: {} {}; it was made for {}", address.text(), made ? "a copy of" : "has taken in", options.file,
                    shared_size_text(p)));
  }
  return exit_status::found;
}

}  // namespace bloomery::cli
