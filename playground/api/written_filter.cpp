#include "playground/api/written_filter.hpp"

#include <bloomery/layout.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <string>
#include <vector>

namespace bloomery::playground {
namespace {

// With a number of bits, the library would choose the layout by the FPR that follows from it.
std::string layout_of(const wanted_filter& wanted, const params& p) {
  return wanted.layout.empty() && (wanted.bits || wanted.window) && wanted.scheme.empty() ? p.layout : wanted.layout;
}

// A literal of C++ from 2^63 on needs to be marked as unsigned.
std::string seed_text(std::uint64_t seed) { return std::to_string(seed) + (seed >> 63 != 0 ? "u" : ""); }

}  // namespace

std::string command_of(const wanted_filter& wanted, const params& p) {
  std::vector<std::string> words = {"bloomery build -o filter.bloom"};
  const std::string layout = layout_of(wanted, p);
  if (wanted.grows) words.push_back("--grow");
  if (!layout.empty() && family_of({.layout = layout}) == family::counting) {
    words.push_back("--counting");
  } else if (!layout.empty()) {
    words.push_back("--layout " + layout);
  }
  if (!wanted.scheme.empty()) words.push_back("--scheme " + wanted.scheme);
  if (!wanted.hash.empty()) words.push_back("--hash " + wanted.hash);
  if (wanted.seed != 0) words.push_back(fmt::format("--seed {}", wanted.seed));
  if (wanted.window) {
    words.push_back(wanted.window->by_time() ? fmt::format("--window {}ms", wanted.window->milliseconds())
                                             : fmt::format("--window-keys {}", wanted.window->keys()));
  }
  if (!wanted.window || wanted.window->by_time() || wanted.capacity) words.push_back(fmt::format("-n {}", p.capacity));
  if (wanted.bits) {
    words.push_back(fmt::format("-m {} -k {}", p.geometry.bits, p.geometry.probes));
  } else {
    words.push_back(fmt::format("-p {}", p.target_fpr));
  }
  words.push_back("keys.txt");
  return fmt::format("{}", fmt::join(words, " "));
}

std::string cpp_of(const wanted_filter& wanted, const params& p) {
  std::vector<std::string> fields;
  const auto add_text = [&](const char* name, const std::string& value) {
    if (!value.empty()) fields.push_back(fmt::format(".{} = \"{}\"", name, value));
  };
  if (wanted.grows) {
    const std::string type = wanted.hash.empty() ? "" : "std::string_view, bloomery::" + wanted.hash;
    const std::string seed = wanted.seed == 0 ? "{}" : "{" + seed_text(wanted.seed) + "}";
    return fmt::format("bloomery::scalable_filter<{}> filter({}, {}, {});", type, p.target_fpr, seed, p.capacity);
  }
  add_text("layout", layout_of(wanted, p));
  add_text("scheme", wanted.scheme);
  add_text("hash", wanted.hash);
  if (wanted.seed != 0) fields.push_back(".seed = " + seed_text(wanted.seed));
  if (wanted.bits) fields.push_back(fmt::format(".geometry = {{{}, {}}}", p.geometry.bits, p.geometry.probes));
  fields.push_back(fmt::format(".capacity = {}", p.capacity));
  fields.push_back(fmt::format(".target_fpr = {}", p.target_fpr));
  if (wanted.window) {
    fields.push_back(wanted.window->by_time()
                         ? fmt::format(".extra = bloomery::window_of_time(std::chrono::milliseconds({}))",
                                       wanted.window->milliseconds())
                         : fmt::format(".extra = bloomery::window_of_keys({})", wanted.window->keys()));
  }
  return fmt::format("bloomery::any_filter filter(bloomery::complete({{{}}}));", fmt::join(fields, ", "));
}

}  // namespace bloomery::playground
