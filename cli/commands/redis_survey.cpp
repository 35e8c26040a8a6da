#include "cli/commands/redis_survey.hpp"
#include "cli/commands/redis_nodes.hpp"
#include "cli/commands/shared_filter.hpp"
#include "cli/text/error_text.hpp"

#include <bloomery/error.hpp>

#include "redis/filter/meta.hpp"
#include "redis/net/batch.hpp"
#include "redis/net/error_class.hpp"
#include "redis/net/router.hpp"

#include <algorithm>
#include <cstddef>

namespace bloomery::cli {
namespace {

constexpr std::size_t names_together = 256;
constexpr std::size_t keys_together = 1024;

redis_address filter_at(const redis_address& server, const std::string& name) {
  redis_address address = server;
  address.name = name;
  return address;
}

// The description in a reply to GET; empty if there is none, or if it is unreadable: then `into` has the problem.
std::shared_ptr<const redis::meta> description_in(const redis::reply& r, const redis_address& address,
                                                  described_name& into) {
  if (r.is_nil()) return nullptr;
  if (r.text().starts_with("WRONGTYPE")) {
    into.is_other = true;
    return nullptr;
  }
  if (!r.text().starts_with("NOPERM")) redis::throw_if_error(r, address, "read the description of a filter");
  try {
    redis::throw_if_error(r, address, "read the description of this filter");
    return std::make_shared<redis::meta>(redis::meta::parse(r.text(), address));
  } catch (const error& e) {
    into.is_other |= e.code() == errc::not_a_filter;
    into.problem = sentence_of(e);
    return nullptr;
  }
}

}  // namespace

std::optional<std::string> decoded_key_name(std::string_view name) {
  std::string decoded;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] != '%') {
      decoded += name[i];
      continue;
    }
    constexpr std::string_view digits = "0123456789ABCDEF";
    const std::size_t high = i + 2 < name.size() ? digits.find(name[i + 1]) : digits.npos;
    const std::size_t low = i + 2 < name.size() ? digits.find(name[i + 2]) : digits.npos;
    if (high == digits.npos || low == digits.npos) return std::nullopt;
    decoded += static_cast<char>(high << 4 | low);
    i += 2;
  }
  if (decoded.empty() || redis::key_name(decoded) != name) return std::nullopt;
  return decoded;
}

void warn_of_eviction(const redis_address& address, const server_options& server) {
  constexpr std::uint64_t longest = 1'000;  // milliseconds
  server_options brief = server;
  brief.milliseconds = std::min(server.milliseconds.value_or(longest), longest);
  std::string policy;
  try {
    redis::router servers(address, connection_of(brief));
    for (const auto& answer : servers.run_on_nodes({"INFO", "memory"})) {
      constexpr std::string_view field = "\nmaxmemory_policy:allkeys-";
      const std::string_view text = answer.reply().text();
      const std::size_t at = answer.reply().is_error() ? text.npos : text.find(field);
      if (at == text.npos) continue;
      const std::string_view value = text.substr(text.find(':', at) + 1);
      policy = value.substr(0, value.find_first_of("\r\n"));
    }
  } catch (const error&) {
    return;  // the work itself reports what fails
  }
  if (policy.empty()) return;
  say(address.text() + ": warning: maxmemory-policy is " + policy +
      ": when memory is full, the server evicts parts of filters, which damages them; "
      "CONFIG SET maxmemory-policy noeviction, or volatile-lru");
}

std::vector<described_name> descriptions_of(redis::router& servers, const std::vector<std::string>& names) {
  std::vector<described_name> all(names.size());
  for (std::size_t first = 0; first < names.size(); first += names_together) {
    const std::size_t end = std::min(names.size(), first + names_together);
    redis::batch question;
    for (std::size_t i = first; i < end; ++i) {
      const std::string key = redis::meta_key(names[i]);
      question.begin(redis::slot_of(key), redis::mode::write);  // of masters
      question.command({"GET", key});
      question.command({"GET", redis::second_key(names[i])});
      question.command({"GET", redis::replacement_key(names[i])});
    }
    servers.run(question, [&](std::size_t group, redis::reply r) {
      described_name& one = all[first + group];
      const redis_address address = filter_at(servers.address(), names[first + group]);
      one.now = description_in(r, address, one);
      one.second = description_in(r.next(), address, one);
      if (!one.now) one.now = one.second;
      one.coming = description_in(r.next().next(), address, one);
    });
  }
  return all;
}

std::optional<std::uint64_t> memory_of_keys(redis::router& servers, const std::vector<std::string>& keys) {
  std::uint64_t bytes = 0;
  bool known = true;
  for (std::size_t first = 0; first < keys.size() && known; first += keys_together) {
    redis::batch question;
    for (std::size_t i = first; i < std::min(keys.size(), first + keys_together); ++i) {
      question.begin(redis::slot_of(keys[i]), redis::mode::read);
      question.command({"MEMORY", "USAGE", keys[i]});
    }
    servers.run(question, [&](std::size_t, redis::reply r) {
      known &= !r.is_error();
      bytes += static_cast<std::uint64_t>(std::max<std::int64_t>(r.integer(), 0));
    });
  }
  return known ? std::optional(bytes) : std::nullopt;
}

std::optional<std::uint64_t> memory_of(redis::router& servers, const redis::meta& description) {
  constexpr std::uint64_t most_asked = 16;
  const std::uint64_t shards = description.shards();
  const std::uint64_t asked = std::min(shards, most_asked);
  std::vector<std::string> keys;
  for (std::uint64_t i = 0; i < asked; ++i) {
    const std::uint64_t shard = i * shards / asked;
    const std::string header = redis::header_key(description, shard);
    keys.push_back(header);
    run_one(servers, header, {"HGETALL", header}, [&](redis::reply r) {
      const auto view = redis::view_of(description, r, servers.address().text());
      for (std::size_t l = 0; view && l < view->numbers.size(); ++l) {
        keys.push_back(redis::layer_key(description, shard, *view, l));
      }
    });
  }
  const std::optional<std::uint64_t> bytes = memory_of_keys(servers, keys);
  if (!bytes) return std::nullopt;
  return static_cast<std::uint64_t>(static_cast<double>(*bytes) / static_cast<double>(asked) *
                                    static_cast<double>(shards));
}

}  // namespace bloomery::cli
