// Kinds that lose keys: sliding-window filters, counting filters and quotient filters.
#include "model/file_subject.hpp"

#include <bloomery/rebuilding_filter.hpp>

#include <chrono>

namespace bloomery_model {
namespace {

using bloomery::key_kind;
using bloomery::params;

contract window(std::string name, key_kind keys, memory kind, std::uint64_t length) {
  contract c;
  c.name = std::move(name);
  c.keys = keys;
  c.able.can_merge = kind == memory::window_of_time;
  c.able.can_clear = c.able.has_window = true;
  c.memory = kind;
  c.window = length;
  c.is_steady = kind == memory::window_of_time;  // a batch may begin a generation and forget another
  c.rate = {.is_exact = false, .factor = 1.5};
  c.also = {verb::reopen, verb::copy};
  return c;
}

contract in_a_file(contract c) {
  c.name += "_file";
  c.after_kill = survival::acknowledged;
  c.also = {verb::reopen, verb::copy, verb::kill, verb::replace};
  return c;
}

contract counting(std::string name, key_kind keys) {
  contract c;
  c.name = std::move(name);
  c.keys = keys;
  c.able.can_remove = c.able.can_merge = c.able.can_clear = c.able.counts_copies = true;
  c.memory = memory::copies;
  c.counts = counting_rule::copies;
  c.also = {verb::reopen, verb::copy};
  return c;
}

contract counting_in_a_file(std::string name, key_kind keys) {
  contract c = counting(std::move(name), keys);
  c.able.commits_whole = true;
  c.after_kill = survival::committed;
  c.also = {verb::reopen, verb::copy, verb::kill, verb::replace};
  return c;
}

}  // namespace

std::vector<kind> window_kinds() {
  std::vector<kind> kinds;
  for (const char* layout : {"sliding", "sliding64"}) {
    const std::string name = layout;
    for (const std::uint64_t keys : {std::uint64_t{24}, std::uint64_t{500}}) {
      const auto c =
          window("Keys" + std::to_string(keys) + "_text_" + name, key_kind::bytes, memory::window_of_keys, keys);
      const params p = {.layout = name, .extra = bloomery::window_of_keys(keys)};
      kinds.push_back(kind_of<heap_subject>(c, p, false));
      kinds.push_back(kind_of<file_subject>(in_a_file(c), p, false));
    }
    const auto c = window("Time_integers_" + name, key_kind::u64le, memory::window_of_time, 7000);
    const params p = {.layout = name, .extra = bloomery::window_of_time(std::chrono::seconds(7))};
    kinds.push_back(kind_of<heap_subject>(c, p));
    kinds.push_back(kind_of<file_subject>(in_a_file(c), p));
    const auto keyed = window("Time_text_siphash_" + name, key_kind::bytes, memory::window_of_time, 1);
    kinds.push_back(kind_of<file_subject>(
        in_a_file(keyed),
        {.layout = name, .hash = "siphash", .secret = the_secret, .extra = bloomery::window_of_milliseconds(1)}));
  }
  return kinds;
}

std::vector<kind> counting_kinds() {
  const params plain = {.layout = "counting"};
  const params keyed = {.layout = "counting", .hash = "siphash", .secret = the_secret};
  const params quotient = {.layout = "quotient"};
  const params keyed_quotient = {.layout = "quotient", .hash = "siphash", .secret = the_secret};
  return {kind_of<heap_subject>(counting("Counting_text_memory", key_kind::bytes), plain),
          kind_of<heap_subject>(counting("Counting_integers_siphash_memory", key_kind::u64le), keyed),
          kind_of<file_subject>(counting_in_a_file("Counting_text_file", key_kind::bytes), plain),
          kind_of<file_subject>(counting_in_a_file("Counting_integers_file", key_kind::u64le), plain),
          kind_of<heap_subject>(counting("Quotient_text_memory", key_kind::bytes), quotient),
          kind_of<heap_subject>(counting("Quotient_integers_siphash_memory", key_kind::u64le), keyed_quotient),
          kind_of<file_subject>(counting_in_a_file("Quotient_integers_file", key_kind::u64le), quotient)};
}

}  // namespace bloomery_model
