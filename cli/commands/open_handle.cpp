#include "cli/commands/open_handle.hpp"

#include "cli/commands/container.hpp"
#include "cli/commands/shared_filter.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/error.hpp>
#include <bloomery/layered_filter.hpp>
#include <bloomery/redis/handle.hpp>

namespace bloomery::cli {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& option, const std::string& hint) {
  throw error(errc::invalid_argument, {what, option, "", "", hint});
}

// Notes about files begin with the name of the file. Warnings are printed even with --quiet.
std::function<void(const std::string&)> notes_for(const named_filter& wanted, bool is_address) {
  if (is_address && wanted.quiet) return {};
  if (is_address) return [where = shown_name(wanted.name)](const std::string& note) { say(where + ": note: " + note); };
  return [quiet = wanted.quiet](const std::string& note) {
    if (!quiet || note.find(": warning: ") != std::string::npos) say(note);
  };
}

void set_chain(redis::open_options& options, const chain_options& chain) {
  if (!chain.scheme.empty() && chain.scheme != chain_scheme) {
    throw error(errc::invalid_argument, {"the scheme is stored with the filter", "--scheme", chain_scheme,
                                         "'" + chain.scheme + "'", "leave out --scheme"});
  }
  options.guava_chain = chain.scheme == chain_scheme;
  if (chain.capacity.has_value() != chain.rate.has_value()) {
    refuse("a Guava chain needs both --capacity and --rate", chain.capacity ? "--capacity" : "--rate",
           "give both or neither");
  }
  if (chain.capacity) options.chain = redis_chain_params{*chain.capacity, *chain.rate};
}

std::unique_ptr<filter_handle> open_container(const container_kind& kind, const named_filter& wanted) {
  const std::string name = kind.name;
  if (!wanted.secret.empty()) refuse(name + " has no secret", "--secret", "leave it out");
  if (wanted.now) refuse(name + " has no window of time", "--now", "leave it out");
  return kind.open(wanted);
}

[[noreturn]] void refuse_writing(const container_kind& kind, const std::string& path) {
  throw error(errc::incompatible,
              {"files of other systems are opened for reading only", path, "a file of bloomery", kind.name,
               kind.has_columns ? "convert a column first: bloomery import --column NAME"
                                : "use it with check, info or verify"});
}

}  // namespace

std::string shown_name(const std::string& name) {
  return redis_address::is_one(name) ? redis_address::parse(name).text() : name;
}

std::unique_ptr<filter_handle> open_handle(const named_filter& wanted, access mode, bool to_remove) {
  const bool writes = mode == access::read_write;
  const bool is_address = redis_address::is_one(wanted.name);
  check_server_options(wanted.name, wanted.server, {}, wanted.chain);
  const container_kind* const container = is_address || writes ? nullptr : container_of(wanted.name);
  const bool has_columns = container != nullptr && container->has_columns;
  if (!wanted.column.empty() && !has_columns) refuse("this is not a Parquet file", "--column", "leave out --column");
  if (container != nullptr) return open_container(*container, wanted);
  redis::open_options options;
  options.mode = mode;
  options.check = writes ? file_check::payload : wanted.check;
  options.waiting = wait_for_writer;
  options.secret = secret_of(wanted.secret);
  options.notes = notes_for(wanted, is_address);
  options.to_remove = to_remove;
  options.no_lock = no_lock();
  options.facts_only = wanted.facts_only;
  options.connection = connection_of(wanted.server);
  options.wait_replicas = static_cast<unsigned>(wanted.server.wait_replicas);
  options.on_damage = wanted.server.on_damage == "maybe" ? redis_damage::maybe : redis_damage::error;
  set_chain(options, wanted.chain);
  if (is_address) refuse_time(wanted.now);
  if (writes) check_locks(wanted.name);
  if (options.guava_chain && options.wait_replicas != 0)
    refuse("operations on a Guava chain do not wait for replicas", "--wait-replicas", "leave it out");
  if (options.guava_chain && options.secret) refuse("a Guava chain has no secret", "--secret", "leave it out");

  std::unique_ptr<filter_handle> filter;
  try {
    filter = redis::open_filter(wanted.name, options);
  } catch (const redis_chain_params_unknown& e) {
    error_text text = e.text();
    text.hint = "give --capacity and --rate; 'bloomery build' stores them";
    throw error(e.code(), text);
  } catch (const error& e) {
    const bool may_be_container = writes && !is_address && e.code() == errc::not_a_filter;
    const container_kind* const kind = may_be_container ? container_of(wanted.name) : nullptr;
    if (kind != nullptr) refuse_writing(*kind, wanted.name);
    throw;
  }

  const capabilities can = filter->capabilities();
  if (!wanted.takes_layers && filter->local() == nullptr && !can.is_remote) {
    const bool is_own = layered_filter_of(*filter) != nullptr;
    throw error(
        errc::incompatible,
        {filter->parameters().has_window() ? "this file contains the slices of a shared sliding-window filter"
                                           : "this file contains the layers of a scalable filter",
         wanted.name, "a filter of one layer", "several layers",
         is_own ? "use it with check, explain, info, verify or push" : "use it with check, explain, info or verify"});
  }
  if (wanted.now && !filter->parameters().window().by_time()) {
    throw error(errc::invalid_argument,
                {"the filter has no window of time", "--now", "", kind_text(filter->parameters()), "leave out --now"});
  }
  if (wanted.chain.capacity && filter->parameters().scheme.empty())
    refuse("the capacity is stored with the filter", "--capacity", "leave out --capacity and --rate");
  if (wanted.now) filter->tick(*wanted.now);
  const any_filter* const local = filter->local();
  if (local != nullptr && local->opened_from() != nullptr && !wanted.quiet && !can.grows)
    say_if_dirty(wanted.name, *local->opened_from());
  if (can.commits_whole) check_room(wanted.name, local->byte_size());
  return filter;
}

}  // namespace bloomery::cli
