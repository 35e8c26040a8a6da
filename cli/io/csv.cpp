#include "cli/io/csv.hpp"

#include <algorithm>
#include <cstring>

namespace bloomery::cli {
namespace {

const char* find(const char* from, const char* end, char wanted) {
  if (from == end) return end;
  const void* const found = std::memchr(from, wanted, static_cast<std::size_t>(end - from));
  return found == nullptr ? end : static_cast<const char*>(found);
}

std::string_view between(const char* from, const char* to) { return {from, static_cast<std::size_t>(to - from)}; }

std::string_view without_return(std::string_view text) {
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

}  // namespace

bool csv_scanner::opens(std::string_view text, std::size_t quote) const {
  return quote == 0 || text[quote - 1] == '\n' || text[quote - 1] == delimiter_;
}

std::size_t csv_scanner::last_end(std::string_view text, std::size_t seen) {
  std::size_t end = 0;
  for (std::size_t at = seen; at < text.size();) {
    if (state_ == state::quoted) {
      const std::size_t quote = text.find('"', at);
      if (quote == std::string_view::npos) break;
      state_ = state::after_quote;
      at = quote + 1;
    } else if (state_ == state::after_quote && text[at] == '"') {
      state_ = state::quoted;
      ++at;
    } else {
      state_ = state::plain;
      const std::size_t quote = std::min(text.find('"', at), text.size());
      const std::size_t line_end = text.substr(at, quote - at).rfind('\n');
      if (line_end != std::string_view::npos) end = at + line_end + 1;
      if (quote < text.size() && opens(text, quote)) {
        state_ = state::quoted;
        quote_at_ = quote;
      }
      at = quote + 1;
    }
  }
  if (in_quotes() && end > 0) quote_at_ -= end;
  return end;
}

csv_cursor::csv_cursor(std::string_view text, char delimiter, std::uint64_t most)
    : at_(text.data()),
      end_(text.data() + text.size()),
      next_quote_(find(at_, end_, '"')),
      delimiter_(delimiter),
      most_(most) {}

bool csv_cursor::next() {
  if (at_ == end_) return false;
  fields_.clear();
  if (next_quote_ < at_) next_quote_ = find(at_, end_, '"');
  const char* line_end = find(at_, end_, '\n');
  if (next_quote_ < line_end)
    line_end = split_quoted();
  else
    split_unquoted(without_return(between(at_, line_end)));
  record_ = between(at_, line_end);
  at_ = line_end == end_ ? end_ : line_end + 1;
  return true;
}

void csv_cursor::split_unquoted(std::string_view record) {
  while (fields_.size() < most_) {
    const std::size_t at = record.find(delimiter_);
    fields_.push_back(record.substr(0, at));
    if (at == std::string_view::npos) return;
    record.remove_prefix(at + 1);
  }
}

// Returns the end of the record.
const char* csv_cursor::split_quoted() {
  const char* at = at_;
  for (;;) {
    const char* const first = at;
    if (at < end_ && *at == '"') {
      do {
        at = find(at + 1, end_, '"');
        if (at < end_) ++at;
      } while (at < end_ && *at == '"');
    }
    while (at < end_ && *at != delimiter_ && *at != '\n') ++at;
    const bool is_last = at == end_ || *at == '\n';
    if (fields_.size() < most_) fields_.push_back(is_last ? without_return(between(first, at)) : between(first, at));
    if (is_last) return at;
    ++at;
  }
}

std::string_view csv_value(std::string_view field, std::string& scratch) {
  if (!field.starts_with('"')) return field;
  field.remove_prefix(1);
  const std::size_t quote = field.find('"');
  if (quote == std::string_view::npos || quote + 1 == field.size()) return field.substr(0, quote);
  scratch.clear();
  for (std::size_t at = 0; at < field.size();) {
    const std::size_t next = field.find('"', at);
    scratch += field.substr(at, next - at);
    if (next == std::string_view::npos) break;
    if (next + 1 == field.size() || field[next + 1] != '"') {
      scratch += field.substr(next + 1);  // text after the closing quote
      break;
    }
    scratch += '"';
    at = next + 2;
  }
  return scratch;
}

csv_header parse_csv_header(std::string_view record, char delimiter) {
  csv_header header{std::string(record), {}};
  std::string scratch;
  csv_cursor cursor(header.line, delimiter);
  if (cursor.next()) {
    for (const std::string_view field : cursor.fields()) header.names.emplace_back(csv_value(field, scratch));
  }
  return header;
}

}  // namespace bloomery::cli
