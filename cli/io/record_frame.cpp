#include "cli/io/record_frame.hpp"

#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/io/records.hpp"

#include <bloomery/error.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace bloomery::cli {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

void remove_front(chunk& piece, std::size_t bytes) {
  piece.size -= bytes;
  std::memmove(piece.buffer.get(), piece.buffer.get() + bytes, piece.size);
}

}  // namespace

std::unique_ptr<record_frame> record_frame::make(const input_options& options) {
  if (!options.csv && options.paths.empty() && !options.time.is_set()) return nullptr;
  return std::make_unique<record_frame>(options);
}

record_frame::record_frame(const input_options& options) : options_(options), scanner_(options.separator().front()) {}

void record_frame::begin_source(const std::string& name) {
  name_ = name == "-" ? "standard input" : name;
  next_line_ = 1;
  at_start_ = true;
  scanned_ = 0;
  scanner_ = csv_scanner(options_.separator().front());
  header_.reset();
}

std::uint64_t record_frame::line_of(std::string_view text, std::size_t at) const {
  return next_line_ + count_of(text.substr(0, at), options_.line_end());
}

std::size_t record_frame::last_end(std::string_view text) {
  if (!options_.csv) {
    const std::size_t end = text.substr(scanned_).rfind(options_.line_end());
    const std::size_t whole = end == std::string_view::npos ? 0 : scanned_ + end + 1;
    scanned_ = text.size() - whole;
    return whole;
  }
  // A quote behind the mark is at the beginning of a field.
  const bool may_have_mark = at_start_ && byte_order_mark.starts_with(text.substr(0, byte_order_mark.size()));
  if (may_have_mark && text.size() < byte_order_mark.size()) return 0;
  const std::size_t mark = may_have_mark ? byte_order_mark.size() : 0;
  const std::size_t seen = std::max(scanned_, mark) - mark;
  const std::size_t end = scanner_.last_end(text.substr(mark), seen);
  if (end == 0) {
    scanned_ = text.size();
    if (text.size() <= most_record_bytes) return 0;
    const std::uint64_t line = line_of(text, scanner_.in_quotes() ? mark + scanner_.quote_at() : 0);
    throw error(errc::invalid_argument,
                {"a CSV record is longer than 64 MiB", name_ + ", line " + app::count_text(line), "",
                 scanner_.in_quotes() ? "a quote that is not closed" : "",
                 "close the quote, or leave out --csv if quotes have no meaning"});
  }
  scanned_ = text.size() - mark - end;
  return mark + end;
}

void record_frame::end_source(std::string_view rest) const {
  if (!options_.csv || !scanner_.in_quotes() || app::stop_signal() != 0) return;
  const bool has_mark = at_start_ && rest.starts_with(byte_order_mark);
  const std::uint64_t line = line_of(rest, (has_mark ? byte_order_mark.size() : 0) + scanner_.quote_at());
  throw error(errc::invalid_argument, {"a CSV quote is not closed", name_ + ", line " + app::count_text(line), "", "",
                                       "close the quote, or leave out --csv if quotes have no meaning"});
}

bool record_frame::deliver(chunk& piece) {
  const bool is_first = std::exchange(at_start_, false);
  const bool is_text = !options_.csv && options_.paths.empty();
  if (is_first && !is_text && piece.text().starts_with(byte_order_mark)) remove_front(piece, byte_order_mark.size());
  const bool has_header = is_first && options_.has_header() && piece.size > 0;
  if (has_header) {
    csv_cursor cursor(piece.text(), options_.separator().front());
    cursor.next();
    const std::size_t size = cursor.record().size();
    header_ = std::make_shared<csv_header>(parse_csv_header(cursor.record(), options_.separator().front()));
    next_line_ += count_of(piece.text().substr(0, std::min(size + 1, piece.size)), '\n');
    remove_front(piece, std::min(size + 1, piece.size));
  }
  piece.header = header_;
  piece.first_line = next_line_;
  next_line_ += count_of(piece.text(), options_.line_end());
  return piece.size > 0 || has_header;
}

}  // namespace bloomery::cli
