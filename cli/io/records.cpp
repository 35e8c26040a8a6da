#include "cli/io/records.hpp"

#include "app/numbers.hpp"

#include <bloomery/detail/generations.hpp>
#include <bloomery/error.hpp>

#include <algorithm>
#include <cstring>
#include <deque>

namespace bloomery::cli {
namespace {

std::string shown(const std::string& source) { return source == "-" ? "standard input" : source; }

// The place of a record, for messages.
std::string place_of(const chunk& piece, std::string_view record, char line_end) {
  const std::string_view before = piece.text().substr(0, static_cast<std::size_t>(record.data() - piece.text().data()));
  return shown(*piece.source) + ", line " + app::count_text(piece.first_line + count_of(before, line_end));
}

std::string shortened(std::string_view text) {
  constexpr std::size_t most = 60;
  return "'" + std::string(text.substr(0, most)) + (text.size() > most ? "..." : "") + "'";
}

std::string_view without_return(std::string_view line, const input_options& options) {
  if (options.crlf && line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// The field of a line that -f names; Delimiter is a byte or a text.
template <class Delimiter>
void cut_field(std::span<const std::string_view> lines, const input_options& options, Delimiter delimiter,
               std::size_t width, std::vector<std::string_view>& keys) {
  const std::uint64_t field = options.fields.front().first;
  for (std::string_view line : lines) {
    line = without_return(line, options);
    for (std::uint64_t skipped = 1; skipped < field && !line.empty(); ++skipped) {
      const std::size_t at = line.find(delimiter);
      line.remove_prefix(at == std::string_view::npos ? line.size() : at + width);
    }
    keys.push_back(line.substr(0, line.find(delimiter)));
  }
}

// The number of the last field that is needed.
std::uint64_t last_of(std::span<const field_range> ranges) {
  std::uint64_t last = 0;
  for (const field_range& range : ranges) last = std::max(last, range.last);
  return last;
}

}  // namespace

// Sums short runs in bytes, which the compiler vectorizes, sixteen at a time.
std::uint64_t count_of(std::string_view text, char wanted) {
  std::uint64_t total = 0;
  while (!text.empty()) {
    const std::size_t length = std::min<std::size_t>(text.size(), 255);
    std::uint8_t found = 0;
    for (std::size_t i = 0; i < length; ++i) found = static_cast<std::uint8_t>(found + (text[i] == wanted ? 1 : 0));
    total += found;
    text.remove_prefix(length);
  }
  return total;
}

void cut_lines(std::string_view text, char line_end, std::vector<std::string_view>& lines) {
  lines.clear();
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    const void* found = std::memchr(at, line_end, static_cast<std::size_t>(end - at));
    const char* const stop = found == nullptr ? end : static_cast<const char*>(found);
    lines.emplace_back(at, static_cast<std::size_t>(stop - at));
    at = stop + 1;
  }
}

void cut_records(std::string_view text, const input_options& options, std::vector<std::string_view>& records) {
  if (!options.csv) return cut_lines(text, options.line_end(), records);
  records.clear();
  for (csv_cursor cursor(text, options.separator().front(), 0); cursor.next();) records.push_back(cursor.record());
}

std::uint64_t count_records(std::string_view text, const input_options& options) {
  if (text.empty()) return 0;
  if (!options.csv) return count_of(text, options.line_end()) + (text.back() != options.line_end() ? 1 : 0);
  std::uint64_t count = 0;
  for (csv_cursor cursor(text, options.separator().front(), 0); cursor.next();) ++count;
  return count;
}

void cut_keys(std::span<const std::string_view> lines, const input_options& options, made_keys& made,
              std::vector<std::string_view>& keys) {
  keys.clear();
  made.clear();
  const std::vector<field_range>& ranges = options.fields;
  const std::string_view delimiter = options.separator();
  if (ranges.empty()) {
    for (const std::string_view line : lines) keys.push_back(without_return(line, options));
    return;
  }
  if (ranges.size() == 1 && ranges.front().is_single()) {
    if (delimiter.size() == 1)
      cut_field(lines, options, delimiter[0], 1, keys);
    else
      cut_field(lines, options, delimiter, delimiter.size(), keys);
    return;
  }
  const std::uint64_t most = last_of(ranges);
  std::vector<std::string_view> fields;
  std::vector<std::string_view> chosen;
  for (const std::string_view line : lines) {
    split_fields(without_return(line, options), delimiter, most, fields);
    chosen.clear();
    for (const field_range& range : ranges) {
      const std::uint64_t last = range.last == field_range::open ? std::max(range.first, fields.size()) : range.last;
      for (std::uint64_t i = range.first; i <= last; ++i) {
        chosen.push_back(i <= fields.size() ? fields[static_cast<std::size_t>(i - 1)] : std::string_view());
      }
    }
    made.join(chosen, keys);
  }
  made.settle(keys);
}

// ---- CSV ------------------------------------------------------------------------------------------------------------

// The columns that are needed, for one header.
class record_cutter::csv_columns {
 public:
  explicit csv_columns(const input_options& options) : options_(options) { resolve(); }

  void use(const chunk& piece) {
    if (header_ == piece.header) return;
    header_ = piece.header;
    source_ = shown(*piece.source);
    resolve();
  }

  std::uint64_t most() const { return most_; }

  // The values of the key's fields; false if the record lacks one of them.
  bool choose(const std::vector<std::string_view>& fields, std::vector<std::string_view>& values) {
    values.clear();
    bool complete = true;
    std::size_t used = 0;
    for (const field_range& range : key_) {
      const std::uint64_t last = range.last == field_range::open ? std::max(range.first, fields.size()) : range.last;
      for (std::uint64_t i = range.first; i <= last; ++i) {
        complete &= i <= fields.size();
        if (used == scratch_.size()) scratch_.emplace_back();
        values.push_back(i <= fields.size() ? csv_value(fields[static_cast<std::size_t>(i - 1)], scratch_[used++])
                                            : std::string_view());
      }
    }
    return complete;
  }

  // Whether a value is in memory of this object.
  bool owns(std::string_view value) const {
    return std::any_of(scratch_.begin(), scratch_.end(),
                       [&](const std::string& s) { return s.data() == value.data(); });
  }

  std::string_view time_of(const std::vector<std::string_view>& fields) {
    return time_.first <= fields.size() ? csv_value(fields[static_cast<std::size_t>(time_.first - 1)], time_scratch_)
                                        : std::string_view();
  }

 private:
  field_range resolved(field_range range) const {
    if (range.name.empty() || !header_) return range;
    const auto& names = header_->names;
    const auto at = std::find(names.begin(), names.end(), range.name);
    if (at == names.end()) refuse("unknown column", range.name);
    if (std::find(at + 1, names.end(), range.name) != names.end()) refuse("several columns have this name", range.name);
    range.first = range.last = static_cast<std::uint64_t>(at - names.begin()) + 1;
    return range;
  }

  [[noreturn]] void refuse(const char* what, const std::string& name) const {
    std::string list;
    for (const std::string& other : header_->names) list += (list.empty() ? "" : ", ") + other;
    constexpr std::size_t most = 300;
    if (list.size() > most) list = list.substr(0, most) + "...";
    throw error(errc::invalid_argument, {what, source_, "one of " + list, "'" + name + "'", "or use its number"});
  }

  void resolve() {
    key_.clear();
    for (const field_range& range : options_.fields) key_.push_back(resolved(range));
    most_ = last_of(key_);
    if (!options_.time.field) return;
    time_ = resolved(*options_.time.field);
    most_ = std::max(most_, time_.first);
  }

  const input_options& options_;
  std::shared_ptr<const csv_header> header_;
  std::string source_;
  std::vector<field_range> key_;
  field_range time_;
  std::uint64_t most_ = 0;
  std::deque<std::string> scratch_;  // a deque: values point to its strings
  std::string time_scratch_;
};

void record_cutter::cut_csv(const chunk& piece, records& to) {
  columns_->use(piece);
  to.lines.clear();
  for (csv_cursor cursor(piece.text(), options_.separator().front(), columns_->most()); cursor.next();) {
    to.lines.push_back(cursor.record());
    if (options_.time.is_set()) add_time(piece, cursor.record(), columns_->time_of(cursor.fields()), to);
    if (options_.fields.empty()) {
      to.cut.push_back(cursor.record().ends_with('\r') ? cursor.record().substr(0, cursor.record().size() - 1)
                                                       : cursor.record());
      continue;
    }
    if (!columns_->choose(cursor.fields(), fields_)) ++to.lacking;
    if (fields_.size() == 1 && columns_->owns(fields_.front()))
      made_.copy(fields_.front(), to.cut);
    else
      made_.join(fields_, to.cut);
  }
}

// ---- JSON Lines -----------------------------------------------------------------------------------------------------

void record_cutter::cut_json(const chunk& piece, records& to) {
  cut_lines(piece.text(), options_.line_end(), to.lines);
  const char* const end = piece.text().data() + piece.size;
  const std::size_t count = options_.paths.size();
  for (const std::string_view line : to.lines) {
    const std::string why = json_->read(line, static_cast<std::size_t>(end - line.data()));
    if (!why.empty()) {
      throw error(errc::invalid_argument, {why, place_of(piece, line, options_.line_end()), "", shortened(line),
                                           "correct the line, or remove it"});
    }
    fields_.clear();
    bool complete = true;
    for (const json_reader::value& value : json_->values().first(count)) {
      complete &= value.has_value();
      fields_.push_back(value.value_or(std::string_view()));
    }
    if (!complete) ++to.lacking;
    if (count == 1)
      made_.copy(fields_.front(), to.cut);
    else
      made_.join(fields_, to.cut);
    if (options_.time.is_set()) add_time(piece, line, json_->values().back().value_or(std::string_view()), to);
  }
}

// ---- all records ----------------------------------------------------------------------------------------------------

record_cutter::record_cutter(const input_options& options) : options_(options) {
  if (options.csv) columns_ = std::make_unique<csv_columns>(options);
  if (options.paths.empty()) return;
  std::vector<const json_path*> paths;
  for (const json_path& path : options.paths) paths.push_back(&path);
  if (options.time.path) paths.push_back(&*options.time.path);
  json_ = std::make_unique<json_reader>(std::move(paths));
}

record_cutter::~record_cutter() = default;

void record_cutter::add_time(const chunk& piece, std::string_view record, std::string_view text, records& to) {
  if (!text.empty() && text == last_time_text_) {
    to.times.push_back(last_time_);
    return;
  }
  const std::optional<std::uint64_t> time = options_.time.format.read(text);
  if (!time) {
    throw error(errc::invalid_argument,
                {"the time of this record cannot be read", place_of(piece, record, options_.line_end()),
                 options_.time.format.example(), shortened(text), "see --time-field and --time-format"});
  }
  if (*time > latest_time_) check_clock(*time, piece, record, text);
  last_time_text_ = text;
  last_time_ = *time;
  to.times.push_back(*time);
}

// One record far in the future would advance the clock of the window, and no key would expire until then.
void record_cutter::check_clock(std::uint64_t time, const chunk& piece, std::string_view record,
                                std::string_view text) {
  const std::uint64_t now = milliseconds_since_1970();
  latest_time_ = now + most_ahead;
  if (time <= latest_time_) return;
  throw error(errc::invalid_argument,
              {"the time of this record is in the future", place_of(piece, record, options_.line_end()),
               "at most a day after the clock of this machine, which shows " + moment_text(now / 1000 * 1000),
               shortened(text) + ", which is " + moment_text(time), "correct the record or the clock"});
}

void record_cutter::cut(const chunk& piece, records& to) {
  to.cut.clear();
  to.times.clear();
  to.lacking = 0;
  made_.clear();
  if (options_.csv) {
    cut_csv(piece, to);
    made_.settle(to.cut);
  } else if (json_) {
    cut_json(piece, to);
    made_.settle(to.cut);
  } else {
    cut_lines(piece.text(), options_.line_end(), to.lines);
    if (!keys_are_lines(options_)) cut_keys(to.lines, options_, made_, to.cut);
    if (options_.time.is_set()) {
      for (const std::string_view line : to.lines) {
        add_time(piece, line, text_of_range(without_return(line, options_), options_.separator(), *options_.time.field),
                 to);
      }
    }
  }
  to.keys = keys_are_lines(options_) ? to.lines : to.cut;
}

}  // namespace bloomery::cli
