#include "playground/session/demo_session.hpp"

#include "app/addresses.hpp"
#include "app/numbers.hpp"

#include <bloomery/detail/generations.hpp>
#include <bloomery/error.hpp>
#include <bloomery/hash.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>
#include <unordered_map>
#include <utility>

namespace bloomery::playground {
namespace {

constexpr std::size_t batch_size = 4096;
constexpr std::uint64_t most_found = 20;
constexpr std::uint64_t most_named_bytes = std::uint64_t{1} << 20;  // of owners per response

std::uint64_t size_of(const key_list& keys) {
  if (const auto* range = std::get_if<address_range>(&keys)) return range->count;
  return std::get<std::vector<std::string>>(keys).size();
}

// Calls work(key) for every key; the string_view is valid during the call.
template <class Work>
void each_key(const key_list& keys, Work work) {
  if (const auto* texts = std::get_if<std::vector<std::string>>(&keys)) {
    for (const std::string& key : *texts) work(std::string_view(key));
    return;
  }
  const auto& range = std::get<address_range>(keys);
  app::address_batch batch;
  for (std::uint64_t done = 0; done < range.count; done += batch_size) {
    batch.make(range.seed, range.first + done, std::min<std::uint64_t>(batch_size, range.count - done));
    for (const std::string_view key : batch.addresses()) work(key);
  }
}

// The longest fingerprint. In quotient filters, a cell is a block of slots.
constexpr std::uint32_t most_cell_bits = 32;

any_filter filter_of_file(const std::string& file) {
  const auto load = [&] {
    try {
      return any_filter::from_bytes(std::span(reinterpret_cast<const std::uint8_t*>(file.data()), file.size()));
    } catch (const error& e) {
      error_text text = e.text();
      text.where = "body";
      if (text.hint.empty()) text.hint = "send a file made by 'bloomery build'";
      throw error(e.code(), std::move(text));
    }
  };
  any_filter filter = load();
  const params& p = filter.parameters();
  if (cell_bits_of(p) > most_cell_bits) {
    throw error(errc::incompatible,
                {"the cells of this filter are too large to be shown one by one", "body",
                 fmt::format("cells of at most {} bits", most_cell_bits),
                 fmt::format("{}, with cells of {} bits", p.layout, cell_bits_of(p)), "open it in the view Inspect"});
  }
  if (filter.bit_size() <= demo_session::most_bits) return filter;
  throw error(
      errc::too_large,
      {"too many bits for a demo filter", "body", "at most " + app::count_text(demo_session::most_bits) + " bits",
       app::count_text(filter.bit_size()), "name the file when you start the playground, to inspect it"});
}

}  // namespace

const char* name_of(membership m) noexcept {
  switch (m) {
    case membership::unknown: return "unknown";
    case membership::added: return "added";
    case membership::never: return "never";
    case membership::removed: return "removed";
    case membership::expired: return "forgotten";
  }
  return "";
}

void demo_session::check_size(const wanted_filter& wanted) {
  const params p = params_of(wanted);
  if (p.geometry.bits <= most_bits) return;
  throw error(errc::too_large, {"too many bits for a demo filter", wanted.bits ? "bits" : "capacity",
                                "at most " + app::count_text(most_bits) + " bits", app::count_text(p.geometry.bits),
                                "use fewer keys, or the command-line tool"});
}

demo_session::demo_session(wanted_filter wanted)
    : wanted_((check_size(wanted), std::move(wanted))), begun_(milliseconds_since_1970()), filter_(as_at_first()) {}

demo_session::demo_session(wanted_filter wanted, const std::vector<step>& steps) : demo_session(std::move(wanted)) {
  // Each removal by force copies the filter.
  constexpr std::uint64_t most_copied = std::uint64_t{1} << 38;  // bits
  const auto forced = std::count_if(steps.begin(), steps.end(), [](const step& s) {
    const auto* removed = std::get_if<remove_step>(&s);
    return removed != nullptr && removed->by_force;
  });
  if (static_cast<std::uint64_t>(forced) > most_copied / std::max<std::uint64_t>(filter_.cells(), 1)) {
    throw error(errc::too_large, {"too many removals by force for a filter of this size", "steps", "", "",
                                  "use fewer steps, or a smaller filter"});
  }
  for (step s : steps) {
    if (auto* added = std::get_if<add_step>(&s)) {
      added->keys = checked(std::move(added->keys));
      if (size_of(added->keys) == 0) continue;
      added->joins = added->joins && !steps_.empty();
    } else if (auto* removed = std::get_if<remove_step>(&s)) {
      removed->key = as_taken(std::move(removed->key));
    }
    do_again(s);
    record(std::move(s));
  }
}

demo_session::demo_session(std::string file_bytes)
    : file_(std::move(file_bytes)), begun_(milliseconds_since_1970()), filter_(as_at_first()) {}

shown_filter demo_session::as_at_first() const {
  shown_filter filter = wanted_ ? shown_filter(*wanted_) : shown_filter(filter_of_file(file_));
  if (emptied_) filter.clear();
  filter.stop_clock_at(begun_);
  return filter;
}

// The key in canonical form: for a filter of integers, 07 becomes 7. @throws error  invalid_argument: not a number
std::string demo_session::as_taken(std::string key) const {
  return filter_.parameters().keys == key_kind::u64le ? std::to_string(number_of_key(key)) : key;
}

key_list demo_session::as_taken(key_list keys) const {
  if (auto* texts = std::get_if<std::vector<std::string>>(&keys)) {
    for (std::string& key : *texts) key = as_taken(std::move(key));
  }
  return keys;
}

bool demo_session::insert(std::string_view key) {
  const bool is_new = filter_.insert(key);
  std::optional<std::uint64_t> section = filter_.epoch();
  if (filter_.has_layers()) section = is_new ? std::optional<std::uint64_t>(filter_.view().layers() - 1) : std::nullopt;
  keys_.add(key, section);
  return is_new;
}

std::uint64_t demo_session::oldest_section() const {
  const std::uint64_t epoch = filter_.epoch();
  return epoch - std::min<std::uint64_t>(epoch, window_slices);
}

bool demo_session::is_in(const reference_set::entry& e) const { return e.copies > 0 && e.section >= oldest_section(); }

std::uint64_t demo_session::distinct() const { return keys_.distinct_since(oldest_section()); }

// Calls work(key, cell) once for each distinct cell of each key in the filter.
template <class Work>
void demo_session::each_owner(Work work) const {
  constexpr std::uint64_t usual_probes = 16;
  const std::uint64_t probes = filter_.parameters().geometry.probes;
  if (keys_.ever() * std::max(probes, usual_probes) > most_owned_keys * usual_probes) return;
  const cell_view cells = filter_.view();
  std::vector<place> met;
  for (std::uint64_t i = 0; i < keys_.ever(); ++i) {
    const std::string& key = keys_.at(i);
    const reference_set::entry& e = *keys_.find(key);
    if (!is_in(e)) continue;
    met.clear();
    for (const place& at : filter_.places_of(key, cells)) {
      // Only one layer of a scalable filter has the key.
      if (filter_.has_layers() && at.layer != e.section) continue;
      if (std::find(met.begin(), met.end(), at) != met.end()) continue;
      met.push_back(at);
      work(key, at.cell);
    }
  }
}

membership demo_session::membership_of(std::string_view key) const {
  const reference_set::entry* const e = keys_.find(key);
  if (e != nullptr && is_in(*e)) return membership::added;
  if (!knows_keys()) return membership::unknown;
  if (e == nullptr) return membership::never;
  return e->copies == 0 ? membership::removed : membership::expired;
}

key_view demo_session::view_of(const std::string& key) const {
  key_view view{key, filter_.hash_of(key), filter_.may_contain(key), membership_of(key), {}};
  for (const place& at : filter_.places_of(key)) view.add_cell(at, filter_.values(at.cell, 1).front());
  view.numbers = filter_.numbers_of(key);
  return view;
}

// Adds the owners of the cells: the keys in the filter that share them.
void demo_session::name_owners(std::vector<key_view>& views) const {
  std::unordered_map<std::uint64_t, owners_of_cell> found;
  for (const key_view& view : views) {
    for (const key_cell& c : view.cells) found[c.at.cell];
  }
  each_owner([&](const std::string& key, std::uint64_t cell) {
    const auto owners = found.find(cell);
    if (owners != found.end()) owners->second.add(key, most_named_owners);
  });
  std::uint64_t bytes = 0;
  for (key_view& view : views) {
    for (key_cell& c : view.cells) {
      const owners_of_cell& owners = found[c.at.cell];
      c.owner_count = owners.count;
      for (const std::string& name : owners.named) bytes += name.size();
      if (bytes <= most_named_bytes) c.owners = owners.named;
    }
  }
}

answers demo_session::ask(key_list keys) const {
  keys = as_taken(std::move(keys));
  answers result;
  each_key(keys, [&](std::string_view key) {
    ++result.count;
    if (result.keys.size() < most_shown_keys) {
      result.keys.push_back(view_of(std::string(key)));
      result.yes += result.keys.back().maybe ? 1 : 0;
      result.false_positives += result.keys.back().false_positive() ? 1 : 0;
    } else if (filter_.may_contain(key)) {
      ++result.yes;
      const membership actual = membership_of(key);
      result.false_positives += actual != membership::added && actual != membership::unknown ? 1 : 0;
    }
  });
  name_owners(result.keys);
  return result;
}

// The keys as they are added. @throws error  as add(): one of them cannot be added
key_list demo_session::checked(key_list keys) const {
  const std::uint64_t count = size_of(keys);
  if (count > most_keys - std::min(keys_of_steps_, most_keys)) {
    throw error(errc::too_large,
                {"too many keys for a demo filter", "keys", "at most " + app::count_text(most_keys) + " in all",
                 app::count_text(keys_of_steps_ + count), "clear the filter, or use the command-line tool"});
  }
  filter_.check_takes_keys();
  keys = as_taken(std::move(keys));
  each_key(keys, [&](std::string_view key) { filter_.check_key(key); });
  return keys;
}

void demo_session::record(step s) {
  if (const auto* added = std::get_if<add_step>(&s)) keys_of_steps_ += size_of(added->keys);
  steps_.push_back(std::move(s));
}

answers demo_session::add(key_list keys, bool joins) {
  facts_.reset();
  keys = checked(std::move(keys));
  answers result;
  // Each of the first keys is shown with the state of the filter just before its insertion.
  each_key(keys, [&](std::string_view key) {
    ++result.count;
    const bool shown = result.keys.size() < most_shown_keys;
    if (shown) result.keys.push_back(view_of(std::string(key)));
    result.yes += insert(key) ? 1 : 0;
    if (!shown) return;
    for (key_cell& c : result.keys.back().cells) {
      c.becomes_set = c.value == 0 && !c.again && filter_.values(c.at.cell, 1).front() != 0;
    }
  });
  if (result.count > 0) record(add_step{std::move(keys), joins && !steps_.empty()});
  name_owners(result.keys);
  return result;
}

bool demo_session::take_out(const std::string& key, bool by_force) {
  const bool found = by_force ? filter_.remove_by_force(key) : filter_.remove(key) == removal::removed;
  by_force ? keys_.remove_all(key) : keys_.remove(key);
  return found;
}

removal_view demo_session::remove(std::string key, bool by_force) {
  facts_.reset();
  key = as_taken(std::move(key));
  removal_view result;
  for (const place& at : filter_.places_of(key)) {
    if (std::find(result.cells.begin(), result.cells.end(), at) == result.cells.end()) result.cells.push_back(at);
  }
  result.found = take_out(key, by_force);
  record(remove_step{key, by_force});
  for (std::uint64_t i = 0; i < keys_.ever(); ++i) {
    const std::string& other = keys_.at(i);
    if (!is_in(*keys_.find(other)) || filter_.may_contain(other)) continue;
    ++result.lost_count;
    if (result.lost.size() < most_shown_keys) result.lost.push_back(other);
  }
  return result;
}

void demo_session::tick(std::uint64_t milliseconds) {
  facts_.reset();
  filter_.tick(milliseconds);
  record(tick_step{milliseconds});
}

std::uint64_t demo_session::step_count() const noexcept {
  return static_cast<std::uint64_t>(std::count_if(steps_.begin(), steps_.end(), [](const step& s) {
    const auto* added = std::get_if<add_step>(&s);
    return added == nullptr || !added->joins;
  }));
}

std::uint64_t demo_session::next_address() const noexcept {
  std::uint64_t next = 0;
  for (const step& s : steps_) {
    const auto* added = std::get_if<add_step>(&s);
    const auto* range = added == nullptr ? nullptr : std::get_if<address_range>(&added->keys);
    if (range != nullptr) next = std::max(next, range->first + range->count);
  }
  return next;
}

std::vector<step> demo_session::insertions() const {
  std::vector<step> result;
  const bool removes =
      std::any_of(steps_.begin(), steps_.end(), [](const step& s) { return std::holds_alternative<remove_step>(s); });
  std::unordered_map<std::string_view, std::uint64_t> left;  // copies that are still to be inserted
  for (std::uint64_t i = 0; removes && i < keys_.ever(); ++i) left[keys_.at(i)] = keys_.find(keys_.at(i))->copies;
  for (const step& s : steps_) {
    const auto* added = std::get_if<add_step>(&s);
    if (added == nullptr) continue;
    if (!removes) {
      result.emplace_back(*added);
      continue;
    }
    std::vector<std::string> present;
    each_key(added->keys, [&](std::string_view key) {
      const auto at = left.find(key);
      if (at == left.end() || at->second == 0) return;
      --at->second;
      present.emplace_back(key);
    });
    if (!present.empty()) result.emplace_back(add_step{std::move(present), added->joins && !result.empty()});
  }
  return result;
}

void demo_session::do_again(const step& s) {
  if (const auto* added = std::get_if<add_step>(&s)) {
    each_key(added->keys, [&](std::string_view key) { insert(key); });
  } else if (const auto* removed = std::get_if<remove_step>(&s)) {
    take_out(removed->key, removed->by_force);
  } else {
    filter_.tick(std::get<tick_step>(s).milliseconds);
  }
}

bool demo_session::can_undo() const {
  // Schemes hash slowly.
  const std::uint64_t most = filter_.parameters().scheme.empty() ? most_keys : most_keys / 5;
  return !steps_.empty() && keys_of_steps_ <= most;
}

void demo_session::undo() {
  if (steps_.empty()) {
    throw error(errc::incompatible, {"there is no step to undo", "", "", "", "add or remove a key first"});
  }
  if (!can_undo()) {
    throw error(errc::incompatible, {"undoing would repeat too many steps", "", "",
                                     app::count_text(keys_of_steps_) + " keys", "clear the filter"});
  }
  shown_filter first = as_at_first();  // may throw (out of memory for a filter from a file) before anything is undone
  first.learn_from(filter_);
  facts_.reset();
  for (bool joins = true; joins;) {
    const auto* added = std::get_if<add_step>(&steps_.back());
    if (added != nullptr) keys_of_steps_ -= size_of(added->keys);
    joins = added != nullptr && added->joins;
    steps_.pop_back();
  }
  filter_ = std::move(first);
  keys_.clear();
  for (const step& s : steps_) do_again(s);
}

void demo_session::reset() {
  if (!filter_.capabilities().can_clear) {
    throw error(errc::incompatible,
                {"a static filter cannot be cleared", "", "", filter_.parameters().layout, "create another filter"});
  }
  if (wanted_) {
    filter_ = as_at_first();
  } else {
    filter_.clear();
    filter_.stop_clock_at(begun_);
    emptied_ = true;  // from here on the reference set is complete
  }
  facts_.reset();
  keys_.clear();
  steps_.clear();
  keys_of_steps_ = 0;
}

owners_of_cell demo_session::owners(std::uint64_t cell, std::uint64_t most) const {
  owners_of_cell result{filter_.values(cell, 1).front(), filter_.view().layer_of(cell), {}, 0};
  each_owner([&](const std::string& key, std::uint64_t owned) {
    if (owned == cell) result.add(key, most);
  });
  return result;
}

search_result demo_session::search(std::uint64_t count, std::uint64_t seed) const {
  // Far from the numbers of added addresses, which begin at 0.
  constexpr std::uint64_t far_away = std::uint64_t{1} << 50;
  search_result result;
  const auto ask = [&](std::string_view key) {
    if (keys_.find(key) != nullptr) return;
    ++result.measured.queries;
    if (!filter_.may_contain(key)) return;
    ++result.measured.hits;
    if (result.found.size() < most_found) result.found.emplace_back(key);
  };
  if (filter_.parameters().keys == key_kind::u64le) {
    for (std::uint64_t i = 0; i < count; ++i) ask(std::to_string(mix64(mix64(seed) ^ (far_away + i))));
  } else {
    each_key(address_range{seed, far_away, count}, ask);
  }
  return result;
}

const filter_facts& demo_session::facts() const {
  if (!facts_) facts_ = filter_.facts(knows_keys() ? std::optional(distinct()) : std::nullopt);
  return *facts_;
}

}  // namespace bloomery::playground
