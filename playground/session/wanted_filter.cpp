#include "playground/session/wanted_filter.hpp"

#include "app/layout_choice.hpp"
#include "app/numbers.hpp"

#include <bloomery/detail/scalable_layers.hpp>
#include <bloomery/error.hpp>
#include <bloomery/layout.hpp>
#include <bloomery/layouts/sliding.hpp>
#include <bloomery/scheme.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

namespace bloomery::playground {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& field, const std::string& expected,
                         const std::string& found, const std::string& hint) {
  throw error(errc::invalid_argument, {what, field, expected, found, hint});
}

void check_name(const char* field, const std::string& name, std::span<const char* const> names) {
  if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) return;
  refuse(fmt::format("unknown {}", field), field, fmt::format("one of {}", fmt::join(names, ", ")),
         "'" + name.substr(0, 40) + "'", fmt::format("omit {}, or choose one of these", field));
}

void check_names(const wanted_filter& w) {
  check_name("layout", w.layout, layouts_to_choose());
  check_name("hash", w.hash, hashes_to_choose());
  if (w.scheme.empty() || find_scheme(w.scheme) != nullptr) return;
  refuse("unknown scheme", "scheme", "one of " + scheme_names(), "'" + w.scheme.substr(0, 40) + "'",
         "omit scheme, or choose one of these");
}

// Rejects incompatible fields; the error names the first.
void check_companions(const wanted_filter& w) {
  struct given {
    const char* field;
    bool is;
  };
  const given layout{"layout", !w.layout.empty()};
  const given scheme{"scheme", !w.scheme.empty()};
  const given hash{"hash", !w.hash.empty()};
  const given seed{"seed", w.seed != 0};
  const given capacity{"capacity", w.capacity.has_value()};
  const given rate{"rate", w.rate.has_value()};
  const given bits{"bits", w.bits.has_value()};
  const given probes{"probes", w.probes.has_value()};
  const given window{w.window && w.window->by_time() ? "window_milliseconds" : "window_keys", w.window.has_value()};
  const auto alone = [](bool chosen, const char* what, const char* it, std::initializer_list<given> others) {
    for (const given& other : others) {
      if (!chosen || !other.is) continue;
      refuse(what, other.field, "", fmt::format("{} and {}", it, other.field),
             fmt::format("omit {} or {}", it, other.field));
    }
  };
  alone(w.grows, "a scalable filter derives its layers from its keys and rate", "grows",
        {layout, scheme, bits, probes, window});
  alone(window.is, "a filter with a window has its own size and layout", window.field, {scheme, bits, probes});
  alone(scheme.is, "a scheme has its own layout and hashes", "scheme", {layout, hash, seed});
  const bool layout_has_window = family_of({.layout = w.layout}) == family::sliding_window;
  if (window.is && layout.is && !layout_has_window) {
    refuse("this layout has no window", "layout", "sliding, sliding64, or none", w.layout,
           fmt::format("omit layout or {}", window.field));
  }
  if (!window.is && layout_has_window) {
    refuse("this layout requires a window", "layout", "", w.layout,
           "add window_keys or window_milliseconds, or omit layout");
  }
  if (capacity.is && rate.is && bits.is) {
    refuse("capacity, rate and bits are given, but two of them determine the third", "bits", "two of them", "three",
           "omit one of them");
  }
  if (probes.is && !bits.is) {
    refuse("probes require bits: capacity and rate determine the number of probes", "probes", "bits", "none",
           "give bits instead of rate, or omit probes");
  }
  if (w.grows || capacity.is || (w.window && !w.window->by_time())) return;
  const bool by_capacity = window.is || scheme.is || family_of({.layout = w.layout}) != family::plain;
  if (!bits.is || !rate.is || by_capacity) {
    refuse("the number of keys is missing", "capacity", "a number of keys", "none",
           by_capacity ? "give capacity" : "give capacity, or bits and rate");
  }
}

params first_of_growing(const wanted_filter& w) {
  params p = complete({.layout = "split_block512", .hash = w.hash, .seed = w.seed, .capacity = 1, .target_fpr = 0.5});
  const scalable_layer first =
      scalable_layer_at(w.rate.value_or(0.01), 0, w.capacity.value_or(scalable_layers::usual_first_layer));
  p.geometry = first.geometry;
  p.capacity = first.capacity;
  p.target_fpr = w.rate.value_or(0.01);
  return p;
}

params sized(const wanted_filter& w) {
  const app::size_request size{w.capacity, w.rate, w.bits, w.probes};
  params wanted{.layout = w.window && w.layout.empty() ? std::string(layouts::sliding::name) : w.layout,
                .scheme = w.scheme,
                .hash = w.hash,
                .seed = w.seed,
                .capacity = w.capacity.value_or(w.window.value_or(window_length{}).keys())};
  if (w.window) wanted.extra = *w.window;
  if (wanted.capacity != 0 && w.bits) return app::sized_by_bits(std::move(wanted), size);
  if (wanted.capacity != 0) {
    wanted.target_fpr = w.rate.value_or(0.01);
    return complete(std::move(wanted));
  }
  // Derives the capacity: the number of keys that the bits hold at this FPR.
  const std::vector<app::layout_plan> plans = app::plan_layouts(size);
  const auto named =
      std::find_if(plans.begin(), plans.end(), [&](const auto& plan) { return plan.p.layout == w.layout; });
  const app::layout_plan& plan = named == plans.end() ? app::chosen_of(plans) : *named;
  if (!plan.possible()) {
    refuse(fmt::format("no {} filter is possible: {}", w.layout, plan.problem), "bits", "", app::count_text(*w.bits),
           "use more bits or a higher rate, or omit layout");
  }
  params p = plan.p;
  p.hash = w.hash;
  p.seed = w.seed;
  return complete(std::move(p));
}

// The text of an error with names of fields instead of command-line options.
std::string in_names_of_fields(std::string text) {
  static constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"--layout", "layout"}, {"--hash", "hash"}, {"--seed", "seed"},    {"--capacity", "capacity"},
      {"--rate", "rate"},     {"--bits", "bits"}, {"--probes", "probes"}};
  const auto is_part = [](char c) { return c == '-' || std::isalnum(static_cast<unsigned char>(c)) != 0; };
  for (const auto& [option, field] : names) {
    for (std::size_t at = 0; (at = text.find(option, at)) != std::string::npos;) {
      const std::size_t end = at + option.size();
      const bool whole = (at == 0 || !is_part(text[at - 1])) && (end == text.size() || !is_part(text[end]));
      if (whole) text.replace(at, option.size(), field);
      at += whole ? field.size() : option.size();
    }
  }
  return text;
}

error in_names_of_fields(const error& e, const wanted_filter& w) {
  static constexpr std::string_view fields[] = {"layout", "scheme", "hash",   "seed",        "capacity",
                                                "rate",   "bits",   "probes", "window_keys", "window_milliseconds",
                                                "grows"};
  error_text text = e.text();
  for (std::string* part : {&text.what, &text.where, &text.expected, &text.found, &text.hint.own_words}) {
    *part = in_names_of_fields(std::move(*part));
  }
  const bool known = std::find(std::begin(fields), std::end(fields), text.where) != std::end(fields);
  if (!known) text.where = w.bits ? "bits" : "capacity";
  if (text.hint.empty()) {
    text.hint = !text.expected.empty() ? fmt::format("give {} as {}", text.expected, text.where)
                : w.bits && w.rate     ? "use more bits or a higher rate"
                : w.bits               ? "use another number of bits, or omit bits"
                                       : "use fewer keys or a higher rate";
  }
  return error(e.code(), std::move(text));
}

}  // namespace

std::span<const char* const> layouts_to_choose() {
  static const std::vector<const char*> names = [] {
    std::vector<layout_facts> all;
    for (const family f : {family::plain, family::counting, family::sliding_window}) {
      const std::vector<layout_facts> some = layouts_of(f);
      all.insert(all.end(), some.begin(), some.end());
    }
    // First the layout of the textbooks, which has no blocks.
    std::stable_partition(all.begin(), all.end(), [](const layout_facts& facts) { return facts.block_bits == 0; });
    std::vector<const char*> found;
    for (const layout_facts& facts : all) found.push_back(facts.name.data());
    return found;
  }();
  return names;
}

std::span<const char* const> hashes_to_choose() noexcept {
  static constexpr const char* names[] = {"xxh3_64", "xxh3", "murmur3"};
  return names;
}

params params_of(const wanted_filter& wanted) {
  check_names(wanted);
  check_companions(wanted);
  try {
    params p = wanted.grows ? first_of_growing(wanted) : sized(wanted);
    if (p.geometry.bits < std::uint64_t{1} << 53) return p;
    throw error(errc::too_large, {"too many bits", wanted.bits ? "bits" : "capacity", "below 2^53",
                                  app::count_text(p.geometry.bits), "use fewer keys or a higher rate"});
  } catch (const error& e) {
    throw in_names_of_fields(e, wanted);
  }
}

}  // namespace bloomery::playground
