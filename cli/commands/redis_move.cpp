// bloomery pull and push: copy filters between files and servers.
//
//   $ bloomery pull redis://cache/users -o users.bloom
//   $ bloomery push users.bloom redis://other/users
//
// The file has the bits of all shards, one shard after another; for a scalable filter all layers of all shards, and for
// a sliding-window filter all slices. A pushed filter is merged into the filter of that name; a file of layers or
// slices becomes a new filter.
#include "cli/commands/grammar.hpp"
#include "cli/commands/shared_filter.hpp"

#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/commands/open_handle.hpp"
#include "cli/commands/window.hpp"
#include "cli/io/times.hpp"
#include "cli/io/whole_file.hpp"
#include "cli/text/error_text.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>
#include <bloomery/layered_filter.hpp>
#include <bloomery/layout.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace bloomery::cli {
namespace {

struct pull_options {
  std::string address;
  std::string output;
  std::string secret;
  std::string note;
  server_options server;
  bool quiet = false;
  bool json = false;
};

struct push_options {
  std::string file;
  std::string address;
  std::string secret;
  sharing_options sharing;
  server_options server;
  bool quiet = false;
  bool json = false;
};

nlohmann::ordered_json size_json(const params& p) {
  return {{"bits", p.geometry.bits},
          {"bytes", bytes_for(p.geometry.bits)},
          {"layout", p.layout},
          {"capacity", p.capacity},
          {"target_rate", p.target_fpr}};
}

}  // namespace

redis_params shared_like(const any_filter& filter, const std::string& name, const sharing_options& sharing) {
  redis_params p;
  p.filter = filter.parameters().without_log();
  const params& f = p.filter;
  if (capabilities_of(f).counts_copies) {
    throw error(errc::incompatible,
                {"filters with removal cannot be pushed, because servers cannot add their copies atomically", name,
                 "a filter of bits", f.layout, "add their keys"});
  }
  const layout_facts* facts = find_layout_facts(f.layout);
  if (facts == nullptr || !facts->may_be_shared) {
    throw error(errc::incompatible,
                {"a filter of this layout cannot be shared", name, "layout split_block512 or blocked", kind_text(f),
                 "build it again with --layout split_block512"});
  }
  p.shards = sharing.shards.value_or(0);
  if (sharing.milliseconds) p.expires_in = std::chrono::milliseconds(*sharing.milliseconds);
  return p;
}

shared_copy put_on_servers(const redis_address& address, const any_filter& filter, const redis_params& like,
                           const sharing_options& sharing, const server_options& server, const std::string& secret) {
  std::optional<redis_filter> to = find_shared(address, server, secret);
  const bool made = !to;
  if (to) refuse_another_sharing(address, to->parameters(), false, sharing, server);
  try {
    if (!to) to = redis_filter::create(address, like, options_for(address, server, secret, false));
    to->merge(filter);
  } catch (const error& e) {
    if (e.code() == errc::incompatible || e.code() == errc::invalid_argument) throw;  // before anything was written
    error_text text = e.text();
    const bool may_be_tried = e.code() != errc::damaged && e.code() != errc::locked;
    std::string to_do = hint_text(e);
    to_do += fmt::format("{}{} may have some of the new keys{}{}", to_do.empty() ? "" : "; ", address.text(),
                         made ? ", or none" : " in addition to its own",
                         may_be_tried ? "; it is safe to run the command again" : "");
    text.hint = std::move(to_do);
    throw error(e.code(), text);
  }
  return {std::move(*to), made};
}

namespace {

// Slices of different shards that begin at the same time count as one.
std::uint64_t slices_of(const layered_filter& filter) {
  std::set<std::uint64_t> starts;
  for (const filter_layer& layer : filter.layers()) starts.insert(layer.start);
  return starts.size();
}

nlohmann::ordered_json size_json(const layered_filter& filter) {
  const params& p = filter.parameters().filter;
  nlohmann::ordered_json result = {
      {"bits", 8 * filter.byte_size()}, {"bytes", filter.byte_size()}, {"layout", p.layout},
      {"capacity", p.capacity},         {"target_rate", p.target_fpr}, {"layers", filter.layers().size()}};
  if (!p.has_window()) return result;
  result["slices"] = slices_of(filter);
  result["copied_at"] = seconds_json(filter.parameters().copied_at);
  return result;
}

std::string size_text_of(const layered_filter& filter) {
  const layered_params& p = filter.parameters();
  const bool is_window = p.filter.has_window();
  return fmt::format("{} in {} of {}{}", bytes_text(filter.byte_size()),
                     is_window ? counted(slices_of(filter), "slice") : counted(filter.layers().size(), "layer"),
                     counted(p.shards, "shard"), is_window ? ", as of " + moment_text(p.copied_at) : "");
}

std::string expired_text(std::uint64_t expired, const layered_filter& from) {
  if (expired == 0) return "";
  if (expired == slices_of(from)) return "; the new filter is empty, because all slices have expired";
  return fmt::format("; {} expired {} left out", count_text(expired), expired == 1 ? "slice was" : "slices were");
}

exit_status pull_layers(redis_filter& filter, const redis_address& address, const pull_options& options,
                        const file_version& replaced) {
  const layered_filter copy = filter.pull_layers(options.note);
  check_room(options.output, copy.file_bytes());
  point_of_no_return();
  copy.save(options.output, create_options{.expected = replaced, .no_lock = no_lock()});
  if (options.json) {
    nlohmann::ordered_json result = {{"filter", options.output}, {"of", address.text()}};
    result.update(size_json(copy));
    print_result(result);
  } else if (!options.quiet) {
    say(fmt::format("{}: {}; {}", options.output, address.text(), size_text_of(copy)));
  }
  return exit_status::found;
}

exit_status push_layers(const layered_filter& from, const redis_address& address, const push_options& options) {
  const layered_params& p = from.parameters();
  if (options.sharing.shards && *options.sharing.shards != p.shards) {
    throw error(errc::invalid_argument,
                {"the number of shards of layers cannot change", "--shards", std::to_string(p.shards),
                 std::to_string(*options.sharing.shards), "leave it out"});
  }
  std::optional<std::chrono::milliseconds> expires_in;
  if (options.sharing.milliseconds) expires_in = std::chrono::milliseconds(*options.sharing.milliseconds);
  std::vector<std::uint64_t> expired;
  redis_filter::create_from(address, from, expires_in, options_for(address, options.server, options.secret, false),
                            &expired);
  if (options.json) {
    nlohmann::ordered_json result = {{"filter", address.text()}, {"of", options.file}, {"made", true}};
    result.update(size_json(from));
    result["shards"] = p.shards;
    if (p.filter.has_window()) result["expired_slices"] = expired.size();
    print_result(result);
  } else if (!options.quiet) {
    say(fmt::format("{}: copy of {}; {}{}", address.text(), options.file, size_text_of(from),
                    expired_text(expired.size(), from)));
  }
  return exit_status::found;
}

exit_status pull(const pull_options& options) {
  refuse_needless(options.server, {&options.address, 1});
  const redis_address address = redis_address::parse(options.address);
  if (redis_address::is_one(options.output)) {
    throw error(errc::invalid_argument, {"pull writes a file", "--output", "a file name", "an address",
                                         "use 'bloomery union -o ADDRESS' to merge shared filters"});
  }
  const file_version replaced = check_replaceable(options.output, "--output");
  check_can_write(options.output);
  check_locks(options.output);
  check_not_the_key(options.output, "--output", options.secret);
  redis_filter filter = open_shared(address, options.server, options.secret, options.quiet);
  const redis_params& shared = filter.parameters();
  if (shared.growth != redis_growth::none || shared.filter.has_window())
    return pull_layers(filter, address, options, replaced);
  check_room(options.output, bytes_for(filter.parameters().filter.geometry.bits));
  const any_filter copy = filter.pull();
  point_of_no_return();
  copy.save(options.output, create_options{.metadata = options.note, .expected = replaced, .no_lock = no_lock()});
  const params& p = copy.parameters();
  if (options.json) {
    nlohmann::ordered_json result = {{"filter", options.output}, {"of", address.text()}};
    result.update(size_json(p));
    print_result(result);
  } else if (!options.quiet) {
    say(fmt::format("{}: copy of {}; {}", options.output, address.text(), size_text(p)));
  }
  return exit_status::found;
}

exit_status push(const push_options& options) {
  refuse_needless(options.server, {&options.address, 1});
  const redis_address address = redis_address::parse(options.address);
  refuse_shared(options.file, "push");
  const std::unique_ptr<filter_handle> file =
      open_handle({.name = options.file, .secret = options.secret, .check = file_check::payload, .takes_layers = true});
  if (const layered_filter* const layers = layered_filter_of(*file)) return push_layers(*layers, address, options);
  if (file->local() == nullptr) {
    throw error(errc::incompatible, {"a shared filter has other bits than the filters of this file", options.file, "",
                                     "", "build it from the keys: bloomery build -o " + address.text()});
  }
  const any_filter& filter = *file->local();
  const auto [to, made] = put_on_servers(address, filter, shared_like(filter, options.file, options.sharing),
                                         options.sharing, options.server, options.secret);
  const redis_params& p = to.parameters();
  if (options.json) {
    nlohmann::ordered_json result = {{"filter", address.text()}, {"of", options.file}, {"made", made}};
    result.update(size_json(p.filter));
    result["shards"] = p.shards;
    print_result(result);
  } else if (!options.quiet) {
    say(fmt::format("{}: {} {}; {}", address.text(), made ? "copy of" : "merged with", options.file,
                    shared_size_text(p)));
  }
  return exit_status::found;
}

}  // namespace

void add_pull(command_line& line) {
  command& c = line.root.subcommand("pull", "copy a filter on Redis to a file");
  auto& o = line.options_of(c, pull);
  c.positional("ADDRESS", o.address, "address of the filter").required().not_empty();
  c.option("-o,--output", o.output, "FILE", "new file; an existing file is replaced once the new one is complete")
      .required()
      .file();
  add_secret(c, o.secret);
  c.option("--note", o.note, "TEXT", "a comment stored in the file");
  add_no_lock(c);
  c.flag("-q,--quiet", o.quiet, "print only errors and warnings").group(of_all_verbs);
  c.flag("--json", o.json, "print the result as one JSON object").group(of_all_verbs);
  add_server(c, o.server);
  c.example("bloomery pull redis://cache/users -o users.bloom");
  c.footer(addresses);
}

void add_push(command_line& line) {
  command& c = line.root.subcommand("push", "copy a filter from a file to Redis");
  auto& o = line.options_of(c, push);
  c.positional("FILE", o.file, "file of a filter with the layout split_block512 or blocked").required().file();
  c.positional("ADDRESS", o.address, "address to copy to; if a filter exists there, its keys are kept")
      .required()
      .not_empty();
  add_secret(c, o.secret);
  c.flag("-q,--quiet", o.quiet, "print only errors and warnings").group(of_all_verbs);
  c.flag("--json", o.json, "print the result as one JSON object").group(of_all_verbs);
  add_life(c, o.sharing);
  add_server(c, o.server);
  c.example("bloomery push users.bloom redis://cache/users");
  c.footer(
      "A pulled copy of a scalable or sliding-window filter can only be pushed to an address where no filter "
      "exists.\n");
  c.footer(addresses);
}

}  // namespace bloomery::cli
