// Table of the formats of other systems, with the checks that their readers share.
#include "formats/format_row.hpp"

#include <bloomery/scheme.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace bloomery::formats {
namespace {

constexpr std::uint64_t most_metadata = std::uint64_t{1} << 20;  // as in files of bloomery

}  // namespace

head::head(std::span<const std::uint8_t> bytes, std::span<const std::uint8_t> last, std::uint64_t file_bytes,
           std::string path)
    : file_bytes_(file_bytes), path_(std::move(path)) {
  std::copy_n(bytes.begin(), std::min(bytes.size(), bytes_.size()), bytes_.begin());
  const std::size_t known = std::min(last.size(), last_.size());
  std::copy_n(last.end() - static_cast<std::ptrdiff_t>(known), known, last_.end() - static_cast<std::ptrdiff_t>(known));
}

void head::refuse(std::string what, std::string expected, std::string found) const {
  throw error(errc::damaged, {std::move(what), path_, std::move(expected), std::move(found), hint::restore_file});
}

void head::check_range(const char* what, std::uint64_t value, std::uint64_t least, std::uint64_t most) const {
  if (value >= least && value <= most) return;
  const std::string range =
      least == most ? std::to_string(least) : std::to_string(least) + " to " + std::to_string(most);
  refuse(what, range, std::to_string(value));
}

void head::check_length(std::uint64_t bits_at, std::uint64_t words, bool has_metadata) const {
  const std::uint64_t end = bits_at + 8 * words;
  const std::uint64_t most = has_metadata ? end + most_metadata : end;
  if (file_bytes_ >= end && file_bytes_ <= most) return;
  refuse(file_bytes_ < end ? "the file is truncated" : "the file is too long",
         std::to_string(end) + (has_metadata ? " bytes, and up to 1 MiB of the user's own" : " bytes"),
         std::to_string(file_bytes_));
}

std::span<const format_row> format_rows() noexcept {
  static const format_row rows[] = {
      guava_row,        spark_row,        dcso_row,    bits_and_blooms_row, redisbloom_row, redisbloom_chunks_row,
      valkey_bloom_row, datasketches_row, leveldb_row, rocksdb_row,         perl_row,
  };
  return rows;
}

const format_row* find_format(std::string_view name) noexcept {
  const auto rows = format_rows();
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const format_row& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

const format_row* recognize(const head& file) noexcept {
  for (const format_row& row : format_rows()) {
    if (!row.is_recognized) continue;
    try {
      row.read(file);
      return &row;
    } catch (const error& e) {
      if (e.code() == errc::incompatible || (row.has_signature != nullptr && row.has_signature(file))) return &row;
      // Otherwise the file is not of this format.
    }
  }
  return nullptr;
}

bool has_scheme(std::string_view schemes, std::string_view scheme) noexcept {
  std::string_view rest = schemes;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(", "), rest.size());
    if (rest.substr(0, comma) == scheme) return true;
    rest.remove_prefix(std::min(comma + 2, rest.size()));
  }
  return false;
}

void set_salts(params& p, std::vector<std::string> salts) {
  const auto salt_for = find_scheme(p.scheme)->salt_for;
  std::uint32_t number = 0;
  const bool are_of_seed_0 =
      std::all_of(salts.begin(), salts.end(), [&](const std::string& salt) { return salt == salt_for(0, number++); });
  if (!are_of_seed_0) p.extra = salt_list{std::move(salts)};
}

void require_capacity(const params& p) {
  if (p.capacity != 0) return;
  throw error(errc::incompatible, {"the capacity of the filter is unknown, and this format stores it", "", "", "",
                                   "give the capacity and the target FPR when the filter is imported"});
}

void require_target_fpr(const params& p) {
  if (p.target_fpr > 0 && p.target_fpr < 1) return;
  throw error(errc::incompatible, {"the target FPR of the filter cannot be stored in this format", "",
                                   "above 0 and below 1", text_of(p.target_fpr), hint::none});
}

std::string text_of(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", number);
  return text;
}

void reverse_words(std::span<std::uint8_t> words) noexcept {
  for (std::size_t at = 0; at + 8 <= words.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, words.data() + at, sizeof word);
    word = __builtin_bswap64(word);
    std::memcpy(words.data() + at, &word, sizeof word);
  }
}

}  // namespace bloomery::formats
