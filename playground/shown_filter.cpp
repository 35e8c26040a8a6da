#include "playground/shown_filter.hpp"

#include "cli/commands.hpp"
#include "cli/counting.hpp"
#include "cli/layout_choice.hpp"
#include "cli/window.hpp"

#include <bloomery/audit.hpp>
#include <bloomery/bits.hpp>
#include <bloomery/census.hpp>
#include <bloomery/error.hpp>
#include <bloomery/fuse.hpp>
#include <bloomery/layouts/counting.hpp>
#include <bloomery/layouts/line.hpp>
#include <bloomery/layouts/window.hpp>
#include <bloomery/scheme.hpp>
#include <bloomery/storage.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <system_error>
#include <utility>

namespace bloomery::playground {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& field, const std::string& expected,
                         const std::string& found, const std::string& way_out) {
  throw error(errc::invalid_argument, {what, field, expected, found, way_out});
}

// Calls work(key) with the key as the filter takes it.
template <class Work>
auto with_key(const any_filter& filter, std::string_view key, Work work) {
  return filter.parameters().keys == key_kind::u64le ? work(number_of_key(key)) : work(key);
}

bool counts_from_top(const params& p) {
  const scheme* const s = find_scheme(p.scheme);
  return s != nullptr && s->from_top;
}

// The blocks of a windowed filter have a stamp before their cells.
struct window_shape {
  explicit window_shape(const params& p)
      : block_bytes(p.layout == window::name ? window::block_bytes : window_line::block_bytes),
        cells_of_block(p.layout == window::name ? window::cells_of_block : window_line::cells_of_block) {}

  std::uint64_t byte_of(std::uint64_t cell) const {
    return window_state_bytes + cell / cells_of_block * block_bytes + (block_bytes - cells_of_block) +
           cell % cells_of_block;
  }
  std::uint64_t block_of(std::uint64_t byte) const { return byte - (byte - window_state_bytes) % block_bytes; }
  std::uint64_t cell_at(std::uint64_t byte) const {
    const std::uint64_t inside = byte - window_state_bytes;
    return inside / block_bytes * cells_of_block + inside % block_bytes - (block_bytes - cells_of_block);
  }

  std::uint64_t block_bytes;
  std::uint64_t cells_of_block;
};

// So many cells a range that there are at most `most`: whole blocks, or a part that divides a block.
std::uint64_t range_for(std::uint64_t cells, std::uint64_t most, std::uint64_t block) {
  const std::uint64_t least = (cells + most - 1) / most;
  if (block == 0) return least;
  if (least >= block) return (least + block - 1) / block * block;
  std::uint64_t part = least;
  while (block % part != 0) ++part;
  return part;
}

// Of a file that passes by: its name is nobody's business.
[[noreturn]] void no_room(const std::string& why) {
  throw error(errc::io, {"no room for a temporary file", "", "", why,
                         "make room, or set TMPDIR to a folder that has some, and start the playground again"});
}

// ---- what is wanted -------------------------------------------------------------------------------------------------

void check_name(const char* field, const std::string& name, std::span<const char* const> names) {
  if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) return;
  refuse(fmt::format("no such {} here", field), field, fmt::format("one of {}", fmt::join(names, ", ")),
         "'" + name.substr(0, 40) + "'", fmt::format("leave {} out, or take one of these", field));
}

void check_names(const wanted_filter& w) {
  check_name("layout", w.layout, layouts_to_choose());
  check_name("hash", w.hash, hashes_to_choose());
  if (w.scheme.empty() || find_scheme(w.scheme) != nullptr) return;
  refuse("no such scheme", "scheme", "one of " + scheme_names(), "'" + w.scheme.substr(0, 40) + "'",
         "leave scheme out, or take one of these");
}

// Which fields go together: the first that does not is named.
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
  const given window_keys{"window_keys", w.window_keys != 0};
  const given window_milliseconds{"window_milliseconds", w.window_milliseconds != 0};
  const auto alone = [](bool chosen, const char* what, const char* it, std::initializer_list<given> others) {
    for (const given& other : others) {
      if (!chosen || !other.is) continue;
      refuse(what, other.field, "", fmt::format("{} and {}", it, other.field),
             fmt::format("leave out {} or {}", it, other.field));
    }
  };
  alone(w.grows, "a growing filter's layers follow from its keys and rate", "grows",
        {layout, scheme, bits, probes, window_keys, window_milliseconds});
  alone(window_keys.is, "a window has one length", "window_keys", {window_milliseconds});
  const bool forgets = window_keys.is || window_milliseconds.is;
  const char* const window = window_keys.is ? window_keys.field : window_milliseconds.field;
  alone(forgets, "a filter that forgets has a size and a layout of its own", window, {scheme, bits, probes});
  alone(scheme.is, "a scheme has a layout and hashes of its own", "scheme", {layout, hash, seed});
  const bool layout_forgets = family_of({.layout = w.layout}) == family::windowed;
  if (forgets && layout.is && !layout_forgets) {
    refuse("this layout forgets nothing", "layout", "window, window_line, or none", w.layout,
           fmt::format("leave out layout or {}", window));
  }
  if (!forgets && layout_forgets) {
    refuse("this layout is for filters that forget", "layout", "", w.layout,
           "give window_keys or window_milliseconds, too, or leave layout out");
  }
  if (capacity.is && rate.is && bits.is) {
    refuse("capacity, rate and bits are three; the third follows from two", "bits", "two of them", "three",
           "leave one of them out");
  }
  if (probes.is && !bits.is) {
    refuse("the number of probes follows from capacity and rate", "probes", "bits beside it", "none",
           "give bits instead of rate, or leave probes out");
  }
  if (w.grows || capacity.is || window_keys.is) return;
  if (!bits.is || !rate.is || forgets || scheme.is || w.layout == counting::name) {
    refuse("nobody knows how many keys will come", "capacity", "a number of keys", "none",
           forgets || scheme.is || w.layout == counting::name ? "give capacity" : "give capacity, or bits and rate");
  }
}

params first_of_growing(const wanted_filter& w) {
  params p = complete({.layout = "line", .hash = w.hash, .seed = w.seed, .capacity = 1, .target_rate = 0.5});
  const growing_layer first =
      layer_of_growing(w.rate.value_or(0.01), 0, w.capacity.value_or(growing_layers::usual_first_layer));
  p.geometry = first.geometry;
  p.capacity = first.capacity;
  p.target_rate = w.rate.value_or(0.01);
  return p;
}

params sized(const wanted_filter& w) {
  cli::making_options making;
  making.capacity = w.capacity;
  making.rate = w.rate;
  making.bits = w.bits;
  making.probes = w.probes;
  making.layout = w.layout;
  making.scheme = w.scheme;
  making.hash = w.hash;
  making.seed = w.seed;
  if (w.window_keys != 0) making.window.keys = w.window_keys;
  if (w.window_milliseconds != 0) making.window.milliseconds = w.window_milliseconds;
  if (cli::wants_window(making)) return cli::params_for(making, cli::window_capacity_said(making), 0.01);
  if (w.capacity) return cli::params_for(making, *w.capacity, 0.01);
  // As many keys as bits hold at this rate.
  const std::vector<cli::layout_plan> plans = cli::plan_layouts(making);
  const auto named =
      std::find_if(plans.begin(), plans.end(), [&](const auto& plan) { return plan.p.layout == w.layout; });
  const cli::layout_plan& plan = named == plans.end() ? cli::chosen_of(plans) : *named;
  if (!plan.possible()) {
    refuse(fmt::format("no {} filter does this: {}", w.layout, plan.problem), "bits", "", std::to_string(*w.bits),
           "give more bits or a higher rate, or leave layout out");
  }
  params p = plan.p;
  p.hash = w.hash;
  p.seed = w.seed;
  return complete(std::move(p));
}

// What the library and the command say of their own arguments, with the names of the fields.
std::string in_names_of_fields(std::string text) {
  static constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"--layout", "layout"}, {"--hash", "hash"}, {"--seed", "seed"}, {"-n", "capacity"},
      {"-p", "rate"},         {"-m", "bits"},     {"-k", "probes"}};
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
  for (std::string* part : {&text.what, &text.where, &text.expected, &text.found, &text.way_out}) {
    *part = in_names_of_fields(std::move(*part));
  }
  const bool known = std::find(std::begin(fields), std::end(fields), text.where) != std::end(fields);
  if (!known) text.where = w.bits ? "bits" : "capacity";
  if (text.way_out.empty()) {
    text.way_out = !text.expected.empty() ? fmt::format("give {} as {}", text.expected, text.where)
                   : w.bits && w.rate     ? "give more bits or a higher rate"
                   : w.bits               ? "give other bits, or leave bits out"
                                          : "ask for fewer keys or a higher rate";
  }
  return error(e.code(), std::move(text));
}

}  // namespace

std::span<const char* const> layouts_to_choose() noexcept {
  static constexpr const char* names[] = {"classic", "split_block", "line",   "line_free",
                                          "page",    "counting",    "window", "window_line"};
  return names;
}

std::span<const char* const> hashes_to_choose() noexcept {
  static constexpr const char* names[] = {"xxh3", "murmur3"};
  return names;
}

std::uint64_t cells_of(const params& p) {
  if (family_of(p) != family::windowed) return p.geometry.bits / cell_bits_of(p);
  const window_shape shape(p);
  return (p.geometry.bits / 8 - window_state_bytes) / shape.block_bytes * shape.cells_of_block;
}

std::uint64_t block_cells_of(const params& p) {
  if (!p.scheme.empty()) return 0;
  if (family_of(p) == family::windowed) return window_shape(p).cells_of_block;
  return block_bits_of(p) / cell_bits_of(p);
}

double rate_of_growing(double p, std::uint64_t first, std::uint64_t keys) {
  // Layers fill one after another.
  double no_alarm = 1;
  for (std::size_t i = 0; keys > 0; ++i) {
    const growing_layer layer = layer_of_growing(p, i, first);
    const std::uint64_t in_it = std::min(keys, layer.capacity);
    no_alarm *= 1 - line::false_positive_rate(layer.geometry, in_it);
    keys -= in_it;
  }
  return 1 - no_alarm;
}

std::uint64_t number_of_key(std::string_view key) {
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(key.data(), key.data() + key.size(), number);
  if (problem == std::errc() && end == key.data() + key.size()) return number;
  refuse("the keys of this filter are numbers", "keys", "0 to 18446744073709551615",
         "'" + std::string(key.substr(0, 40)) + "'", "give a number, or make a filter of strings");
}

params params_of(const wanted_filter& wanted) {
  check_names(wanted);
  check_companions(wanted);
  try {
    params p = wanted.grows ? first_of_growing(wanted) : sized(wanted);
    if (p.geometry.bits < std::uint64_t{1} << 53) return p;
    throw error(errc::too_large, {"too many bits to be told exactly", wanted.bits ? "bits" : "capacity", "below 2^53",
                                  std::to_string(p.geometry.bits), "ask for fewer keys or a higher rate"});
  } catch (const error& e) {
    throw in_names_of_fields(e, wanted);
  }
}

passing_file::passing_file() {
  std::error_code problem;
  path_ = (std::filesystem::temp_directory_path(problem) / "bloomery-XXXXXX").string();
  if (problem) no_room(problem.message());
  const int fd = ::mkstemp(path_.data());
  if (fd < 0) no_room(std::strerror(errno));
  ::close(fd);
}

passing_file::~passing_file() { ::unlink(path_.c_str()); }

void passing_file::write(std::string_view bytes) const {
  std::ofstream out(path_, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) no_room("it cannot be written");
}

std::string passing_file::read() const {
  std::ifstream in(path_, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

struct shown_filter::layers {
  layers(const params& p, std::uint64_t first_layer)
      : asked(p),
        hasher(complete({.layout = "line", .hash = p.hash, .seed = p.seed, .capacity = 1, .target_rate = 0.5})),
        first(first_layer),
        grown(p.target_rate, first_layer) {}

  key_hash hash(std::string_view key) const {
    key_hash h;
    hasher.hash(std::span(&key, 1), std::span(&h, 1));
    return h;
  }

  params asked;
  any_filter hasher;  // hashes, and nothing else
  std::uint64_t first;
  growing_layers grown;
};

shown_filter::shown_filter(const wanted_filter& wanted) {
  const params p = params_of(wanted);
  if (wanted.grows) {
    layers_ = std::make_unique<layers>(p, p.capacity);
    return;
  }
  filter_.emplace(p);
  if (forgets()) generations_.emplace(parameters());
}

shown_filter::shown_filter(any_filter filter) : filter_(std::move(filter)) {
  if (forgets()) generations_.emplace(parameters());
}

shown_filter::shown_filter(mapped_storage bits) : bits_(std::move(bits)) {
  if (forgets()) generations_.emplace(parameters());
}

void shown_filter::stop_clock_at(std::uint64_t milliseconds) {
  if (!forgets() || parameters().window_milliseconds == 0) return;
  // Not at this day's generation if it has others: long after, there would be nothing to see.
  const window_facts facts = facts_of_window(parameters(), filter_->bytes());
  const std::uint64_t epoch = facts.epoch != 0 ? facts.epoch : milliseconds / facts.part;
  now_ = std::make_unique<std::uint64_t>(epoch * facts.part);
  const auto stopped = [now = now_.get()] { return *now; };
  filter_->set_clock(stopped);
  generations_->set_clock(stopped);
}

shown_filter::shown_filter(shown_filter&&) noexcept = default;
shown_filter& shown_filter::operator=(shown_filter&&) noexcept = default;
shown_filter::~shown_filter() = default;

const params& shown_filter::parameters() const noexcept {
  return layers_ ? layers_->asked : bits_ ? bits_->info().parameters : filter_->parameters();
}
bool shown_filter::grows() const noexcept { return layers_ != nullptr; }
std::uint64_t shown_filter::byte_size() const noexcept { return layers_ ? layers_->grown.byte_size() : bytes().size(); }

bool shown_filter::insert(std::string_view key) {
  if (layers_) return layers_->grown.insert(layers_->hash(key));
  return with_key(*filter_, key, [&](auto k) { return filter_->insert(k); });
}

bool shown_filter::may_contain(std::string_view key) const {
  if (layers_) return layers_->grown.may_contain(layers_->hash(key));
  return with_key(*filter_, key, [&](auto k) { return filter_->may_contain(k); });
}

removal shown_filter::remove(std::string_view key) {
  if (layers_ || family_of(parameters()) != family::counting) {
    throw error(errc::incompatible, {"keys cannot be removed from this filter: others may share their bits", "", "", "",
                                     "make one of layout counting, or use force and see what is lost"});
  }
  return with_key(*filter_, key, [&](auto k) { return filter_->remove(k); });
}

bool shown_filter::remove_by_force(std::string_view key) {
  if (layers_ || family_of(parameters()) != family::plain) {
    throw error(errc::incompatible, {"only the bits of a plain filter can be cleared by force", "by_force", "", "",
                                     "leave out by_force, or make a filter of another layout"});
  }
  if (!may_contain(key)) return false;
  heap_storage bytes(filter_->byte_size());
  std::copy(filter_->bytes().begin(), filter_->bytes().end(), bytes.data());
  for (const std::uint64_t bit : with_key(*filter_, key, [&](auto k) { return filter_->cells(k); })) {
    bytes.data()[bit >> 3] &= static_cast<std::uint8_t>(~(1u << (bit & 7)));
  }
  filter_.emplace(any_filter(params(filter_->parameters()), std::move(bytes)));
  return true;
}

void shown_filter::clear() {
  if (layers_) return layers_->grown.clear();
  filter_->clear();
}

void shown_filter::tick(std::uint64_t milliseconds) {
  if (!now_)
    throw error(errc::incompatible, {"time means nothing to this filter", "milliseconds", "a window of time", "",
                                     "make one with window_milliseconds"});
  *now_ += std::min(milliseconds, (std::uint64_t{1} << 62) - std::min(*now_, std::uint64_t{1} << 62));
}

void shown_filter::check_key(std::string_view key) const {
  if (filter_ && parameters().keys == key_kind::u64le) number_of_key(key);
}

void shown_filter::check_takes_keys() const {
  if (layers_ || family_of(parameters()) != family::sealed) return;
  throw error(errc::incompatible, {"a sealed filter takes no keys", "", "", parameters().layout, "make another one"});
}

std::optional<window_facts> shown_filter::window() const {
  if (!forgets()) return std::nullopt;
  return facts_of_window(parameters(), bytes(), epoch());
}
std::uint64_t shown_filter::epoch() const { return generations_->epoch(bytes().data()); }
bool shown_filter::forgets() const noexcept { return !layers_ && family_of(parameters()) == family::windowed; }

std::vector<place> shown_filter::places_of(std::string_view key) const {
  std::vector<place> places;
  if (layers_) {
    const key_hash hash = layers_->hash(key);
    std::uint64_t first_cell = 0;
    std::uint32_t number = 0;
    for (const growing_layer& layer : layers_->grown.layers()) {
      line::cells cells(layer.geometry, hash);
      for (std::uint32_t i = 0; i < cells.count(); ++i) places.push_back({first_cell + cells.next(), number});
      first_cell += layer.geometry.bits;
      ++number;
    }
    return places;
  }
  const params& p = parameters();
  const bool from_top = counts_from_top(p);
  for (const std::uint64_t cell : with_key(*filter_, key, [&](auto k) { return filter_->cells(k); })) {
    places.push_back({family_of(p) == family::windowed ? window_shape(p).cell_at(cell / 8)
                      : from_top                       ? cell ^ 7
                                                       : cell});
  }
  return places;
}

std::optional<key_hash> shown_filter::hash_of(std::string_view key) const {
  if (layers_) return layers_->hash(key);
  if (!filter_->uses_hashes()) return std::nullopt;
  key_hash hash;
  with_key(*filter_, key, [&](auto k) { filter_->hash(std::span(&k, 1), std::span(&hash, 1)); });
  return hash;
}

std::uint64_t shown_filter::bits() const { return layers_ ? cells() : parameters().geometry.bits; }

std::uint64_t shown_filter::cells() const {
  if (!layers_) return cells_of(parameters());
  std::uint64_t all = 0;
  for (const growing_layer& layer : layers_->grown.layers()) all += layer.geometry.bits;
  return all;
}

// The bytes of the cells, found once for however many are looked at.
class shown_filter::cell_reader {
 public:
  explicit cell_reader(const shown_filter& f)
      : params_(f.parameters()),
        family_(f.layers_ ? family::plain : family_of(params_)),
        mask_(counts_from_top(params_) ? 7 : 0) {
    if (f.layers_) {
      std::uint64_t first_cell = 0;
      for (const growing_layer& layer : f.layers_->grown.layers()) {
        segments_.push_back({first_cell, layer.geometry.bits, f.layers_->grown.bytes_of(segments_.size())});
        first_cell += layer.geometry.bits;
      }
    } else {
      segments_.push_back({0, cells_of(params_), f.bytes()});
      if (family_ == family::windowed) {
        shape_.emplace(params_);
        epoch_ = static_cast<std::uint32_t>(f.epoch());
      }
    }
  }

  std::uint32_t layer_of(std::uint64_t cell) const {
    const auto after = std::upper_bound(segments_.begin(), segments_.end(), cell,
                                        [](std::uint64_t at, const segment& s) { return at < s.first_cell; });
    return static_cast<std::uint32_t>(after - segments_.begin()) - 1;
  }

  std::uint32_t value(std::uint64_t cell) const {
    const segment& s = segments_[layer_of(cell)];
    if (family_ == family::windowed) {
      const std::uint64_t byte = shape_->byte_of(cell);
      std::uint32_t stamp;
      std::memcpy(&stamp, s.bytes.data() + shape_->block_of(byte), sizeof stamp);
      return s.bytes[byte] & live_lanes(stamp, epoch_);
    }
    if (family_ == family::sealed) return fuse_cell(cell_bits_of(params_), s.bytes, cell);
    return family_ == family::plain ? std::uint32_t{test_bit(s.bytes.data(), (cell - s.first_cell) ^ mask_)}
                                    : cli::value_of_cell(params_, s.bytes, cell);
  }

  // Cells of from .. to - 1 that are not 0.
  std::uint64_t ones(std::uint64_t from, std::uint64_t to) const {
    std::uint64_t ones = 0;
    while (from < to) {
      const segment& s = segments_[layer_of(from)];
      const std::uint64_t end = std::min(to, s.first_cell + s.cells);
      // Whole bytes at once: from whichever end their bits are counted, they are the same.
      const bool whole_byte = family_ == family::plain && (from - s.first_cell) % 8 == 0 && end - from >= 8;
      const std::uint64_t bytes = whole_byte ? (end - from) / 8 : 0;
      ones += whole_byte ? count_ones(s.bytes.subspan((from - s.first_cell) / 8, bytes)) : value(from) != 0;
      from += whole_byte ? 8 * bytes : 1;
    }
    return ones;
  }

  void count_runs(std::uint64_t from, std::uint64_t run, std::span<std::uint64_t> ones) const {
    const segment& last = segments_.back();
    const bool whole = from + run * ones.size() <= last.first_cell + last.cells;
    if (whole && segments_.size() == 1 && from % run == 0) {
      const std::span<const std::uint8_t> bytes = last.bytes;
      if (family_ == family::plain && run == 512) {
        return count_ones_of_lines(bytes.subspan(from / 8, 64 * ones.size()), ones);
      }
      if (family_ == family::counting && run == counting::cells_of_line) {
        for (std::uint64_t& sum : ones) {
          sum = counting::cells_used(bytes.subspan(from / 2, run / 2));
          from += run;
        }
        return;
      }
      if (family_ == family::windowed && run == shape_->cells_of_block) {
        for (std::uint64_t& sum : ones) {
          sum = block_ones(bytes.data() + shape_->byte_of(from));
          from += run;
        }
        return;
      }
    }
    const std::uint64_t end = last.first_cell + last.cells;
    for (std::uint64_t& sum : ones) {
      sum = this->ones(from, std::min(end, from + run));
      from += run;
    }
  }

 private:
  // Of a windowed filter's block. @param cells  the first of them, behind the block's stamp
  std::uint64_t block_ones(const std::uint8_t* cells) const {
    std::uint32_t stamp;
    std::memcpy(&stamp, cells - (shape_->block_bytes - shape_->cells_of_block), sizeof stamp);
    const std::uint8_t live = live_lanes(stamp, epoch_);
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < shape_->cells_of_block; ++i) sum += (cells[i] & live) != 0 ? 1 : 0;
    return sum;
  }

  struct segment {
    std::uint64_t first_cell;
    std::uint64_t cells;
    std::span<const std::uint8_t> bytes;
  };

  const params& params_;
  bloomery::family family_;
  std::uint64_t mask_;
  std::vector<segment> segments_;
  std::optional<window_shape> shape_;
  std::uint32_t epoch_ = 0;
};

std::uint32_t shown_filter::layer_of(std::uint64_t cell) const { return cell_reader(*this).layer_of(cell); }

std::uint32_t shown_filter::newest_layer() const {
  return layers_ ? static_cast<std::uint32_t>(layers_->grown.layers().size()) - 1 : 0;
}

std::vector<std::uint8_t> shown_filter::values(std::uint64_t from, std::uint64_t count) const {
  const cell_reader reader(*this);
  std::vector<std::uint8_t> all(count);
  const bool wide = cell_bits_of(parameters()) > 8;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t value = reader.value(from + i);
    all[i] = static_cast<std::uint8_t>(wide ? value != 0 : value);
  }
  return all;
}

std::uint64_t shown_filter::block_cells() const {
  return layers_ ? std::uint64_t{line::block_bits} : block_cells_of(parameters());
}

fill_ranges shown_filter::fill(std::uint64_t from, std::uint64_t to, std::uint64_t most) const {
  const cell_reader reader(*this);
  fill_ranges ranges;
  ranges.cells_of_range = range_for(to - from, most, block_cells());
  for (; from < to; from += ranges.cells_of_range) {
    ranges.ones.push_back(reader.ones(from, std::min(to, from + ranges.cells_of_range)));
  }
  return ranges;
}

void shown_filter::count_runs(std::uint64_t from, std::uint64_t run, std::span<std::uint64_t> ones) const {
  cell_reader(*this).count_runs(from, run, ones);
}

double shown_filter::rate_at(std::uint64_t keys) const {
  if (!layers_) {
    return false_positive_rate(parameters(), keys);
  }
  return rate_of_growing(layers_->asked.target_rate, layers_->first, keys);
}

// Of a window by time without what has run out since its newest generation: lookups see none of that.
census shown_filter::bits_now() const {
  const params& p = parameters();
  if (!forgets() || window_state::of(bytes().data()).newest == epoch()) return take_census(p, bytes());
  heap_storage now(bytes().size());
  std::copy(bytes().begin(), bytes().end(), now.data());
  const window_state state = window_state::of(now.data()).at(epoch());
  std::memcpy(now.data(), &state, sizeof state);
  return take_census(p, {now.data(), now.size()});
}

filter_facts shown_filter::facts(std::optional<std::uint64_t> keys) const {
  filter_facts f;
  f.cells = cells();
  if (layers_) return facts_of_layers(std::move(f));
  const params& p = parameters();
  const census bits = bits_now();
  const key_counts& counts = bits_ ? bits_->info().counts : filter_->counts();
  f.counted = filter_ ? filter_->size() : counts.inserted;
  f.count_is_estimate = counts.is_estimate;
  f.ones = forgets() ? cell_reader(*this).ones(0, f.cells) : bits.ones;
  f.certified = bits.certified_rate;
  if (family_of(p) == family::sealed) {
    // Its cells tell nothing of its keys, and it takes no more.
    f.ones = f.cells;
    f.predicted = rate_at(f.counted);
    f.estimated.value = f.estimated.sigma = std::numeric_limits<double>::infinity();
    return f;
  }
  f.window = window();
  f.layers.push_back(
      {.cells = f.cells, .capacity = p.capacity, .keys = f.counted, .ones = f.ones, .share = p.target_rate});
  if (f.window) {
    f.overfull = f.window->has_overfull_generation();
    const double held = static_cast<double>(f.window->keys_held());
    f.estimated = {held, 0};
    f.predicted = f.window->rate;
    const std::uint64_t held_keys = f.window->keys_held();
    f.keys_left = p.capacity > held_keys ? p.capacity - held_keys : 0;
    return f;
  }
  f.estimated = estimated_keys(p, bits.ones);
  const std::uint64_t in = keys.value_or(f.counted);
  f.predicted = rate_at(in);
  if (!most_) most_ = p.target_rate > 0 && p.target_rate < 1 ? cli::keys_within(p, p.target_rate) : 0;
  f.keys_left = *most_ > in && f.certified <= p.target_rate * 1.01 ? *most_ - in : 0;
  const audit count = audit_count(p, f.counted, bits.ones);
  if (!f.count_is_estimate && count.alarming()) {
    f.alarm = fmt::format("{} bits are set than the count of keys explains", count.deviation() > 0 ? "more" : "fewer");
  }
  return f;
}

filter_facts shown_filter::facts_of_layers(filter_facts f) const {
  const growing_layers& grown = layers_->grown;
  const cell_reader reader(*this);
  f.counted = grown.size();
  f.certified = grown.certified_rate();
  f.predicted = grown.false_positive_rate();
  double variance = 0;
  std::uint64_t first_cell = 0;
  for (const growing_layer& layer : grown.layers()) {
    const std::uint64_t ones = reader.ones(first_cell, first_cell + layer.geometry.bits);
    const estimate in = estimated_keys({.layout = "line", .geometry = layer.geometry}, ones);
    f.estimated.value += in.value;
    variance += in.sigma * in.sigma;
    f.ones += ones;
    f.layers.push_back({first_cell, layer.geometry.bits, layer.capacity, layer.size, ones, layer.share});
    first_cell += layer.geometry.bits;
  }
  f.estimated.sigma = std::sqrt(variance);
  const layer_facts& newest = f.layers.back();
  f.keys_left = newest.capacity > newest.keys ? newest.capacity - newest.keys : 0;
  return f;
}

std::string shown_filter::file() const {
  if (layers_) {
    throw error(errc::incompatible, {"a growing filter lives in memory, and has no file", "", "", "",
                                     "make one of fixed size; the command keeps growing ones with a log"});
  }
  const passing_file copy;
  try {
    filter_->save(copy.path());
  } catch (const error& e) {
    no_room(e.text().found);
  }
  return copy.read();
}

}  // namespace bloomery::playground
