#include "cli/io/file_kinds.hpp"

#include "app/numbers.hpp"
#include "cli/io/records.hpp"

#include <bloomery/detail/file_magic.hpp>
#include <bloomery/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace bloomery::cli {
namespace {

using namespace std::string_literals;

constexpr char any_byte = '?';  // in a magic number

struct magic_number {
  std::string bytes;
  std::size_t offset;
  file_kind kind;
};

std::string bytes_of(const file_magic& magic) { return {magic.begin(), magic.end()}; }

std::string by(const std::string& command) { return "decompress it first: " + command + " | bloomery ..."; }

// No magic number is a prefix of another, and none is text. Sources: the specifications of the formats.
const std::vector<magic_number>& magic_numbers() {
  static const std::string other_file = "give a file of keys; a filter cannot list its keys";
  static const std::vector<magic_number> all = [] {
    std::vector<magic_number> numbers = {
        {"\x1F\x8B"s, 0, {"gzip data", compression::gzip}},
        {"\x28\xB5\x2F\xFD"s, 0, {"zstd data", compression::zstd}},
        {"\x04\x22\x4D\x18"s, 0, {"LZ4 data", compression::lz4}},
        {"\xFD"
         "7zXZ\0"s,
         0,
         {"xz data", compression::xz}},
        {"BZh?1AY&SY"s, 0, {"bzip2 data", compression::bzip2}},
        {"BZh?\x17rE8P\x90"s, 0, {"bzip2 data", compression::bzip2}},  // of no bytes
        {"\x02\x21\x4C\x18"s, 0, {"LZ4 data in the legacy format", {}, by("lz4 -dc FILE")}},
        {"\x1F\x9D"s, 0, {"data compressed by compress (.Z)", {}, by("gzip -dc FILE")}},
        {"LZIP\x01"s, 0, {"lzip data", {}, by("lzip -dc FILE")}},
        {"\x89LZO\0\r\n\x1A\n"s, 0, {"lzop data", {}, by("lzop -dc FILE")}},
        {"\xFF\x06\0\0sNaPpY"s, 0, {"Snappy data", {}, by("snzip -dc FILE")}},
        {"PK\x03\x04"s, 0, {"a zip archive", {}, by("unzip -p FILE")}},
        {"PK\x05\x06"s, 0, {"an empty zip archive", {}, by("unzip -p FILE")}},
        {"PK\x07\x08"s, 0, {"a zip archive in parts", {}, by("unzip -p FILE")}},
        {"7z\xBC\xAF\x27\x1C"s, 0, {"a 7z archive", {}, by("7z x -so FILE")}},
        {"Rar!\x1A\x07"s, 0, {"a RAR archive", {}, by("unrar p -inul FILE")}},
        {bytes_of(filter_magic), 0, {"a bloomery filter", {}, other_file}},
        {bytes_of(layers_magic), 0, {"the layers of a bloomery filter", {}, other_file}},
        {bytes_of(key_log_magic), 0, {"the log of a bloomery filter", {}, other_file}},
    };
    for (char first = 0x50; first <= 0x5F; ++first)
      numbers.push_back({first + "*M\x18"s, 0, {"a skippable frame", {}, "", true}});
    return numbers;
  }();
  return all;
}

// Kinds of binary data without magic bytes at the start, or whose first bytes could be text.
const std::vector<magic_number>& magic_numbers_of_binary_data() {
  static const std::string as_utf8 = "convert it first: iconv -f UTF-16 -t UTF-8 FILE | bloomery ...";
  static const std::vector<magic_number> all = {
      {"ustar"s, 257, {"a tar archive", {}, "extract the files first: tar -xOf FILE | bloomery ..."}},
      {"\xFF\xFE"s, 0, {"text in UTF-16", {}, as_utf8}},
      {"\xFE\xFF"s, 0, {"text in UTF-16", {}, as_utf8}},
  };
  return all;
}

// The number of bytes of `magic` that `start` has, up to the first that differs.
std::size_t match(const magic_number& magic, std::string_view start) {
  if (start.size() < magic.offset) return 0;
  start.remove_prefix(magic.offset);
  const auto same = [](char wanted, char found) { return wanted == any_byte || wanted == found; };
  const auto end = std::mismatch(magic.bytes.begin(), magic.bytes.end(), start.begin(), start.end(), same).first;
  return static_cast<std::size_t>(end - magic.bytes.begin());
}

}  // namespace

recognition recognise(std::string_view start) {
  bool needs_more = false;
  for (const magic_number& magic : magic_numbers()) {
    const std::size_t same = match(magic, start);
    if (same == magic.bytes.size()) return {&magic.kind};
    needs_more |= same == start.size();
  }
  return {nullptr, needs_more};
}

void refuse_kind(const file_kind& kind, const std::string& input) {
  throw error(errc::invalid_argument,
              {"this input is not a text file", shown_input(input),
               "text, or text compressed with gzip, zstd, lz4, xz or bzip2", kind.name, kind.hint});
}

void binary_check::look_at(std::string_view bytes) {
  if (seen_ == 0) {
    if (const file_kind* kind = recognise(bytes).kind; kind != nullptr) {
      if (!kind->format && !kind->is_skippable) refuse_kind(*kind, input_);
      throw error(errc::invalid_argument, {"this input is compressed twice", shown_input(input_), "text",
                                           kind->name + " within compressed data", "decompress it once first"});
    }
  }
  if (allows_nul_) {
    seen_ += bytes.size();
    return;
  }
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, window - seen_ % window);
    if (seen_ < window)
      look_at_start(part);
    else
      look_at_rest(part);
    seen_ += part.size();
    lines_ += count_of(part, '\n');
    bytes.remove_prefix(part.size());
  }
}

void binary_check::look_at_start(std::string_view bytes) const {
  const std::size_t nul = bytes.find('\0');
  if (nul == std::string_view::npos) return;
  for (const magic_number& magic : magic_numbers_of_binary_data()) {
    if (seen_ == 0 && match(magic, bytes) == magic.bytes.size()) refuse_kind(magic.kind, input_);
  }
  throw error(errc::invalid_argument, {"this input is binary data", shown_input(input_), "lines of text",
                                       fmt::format("a NUL byte at offset {}", seen_ + nul),
                                       "give --null if its keys end with NUL, or --text to read it as lines anyway"});
}

// Few NUL bytes may be in damaged lines of text; binary data has more.
void binary_check::look_at_rest(std::string_view bytes) {
  constexpr std::uint64_t most = 64;
  if (seen_ % window == 0) nuls_ = 0;
  const std::size_t nul = bytes.find('\0');
  if (nul == std::string_view::npos) return;
  if (nuls_ == 0) {
    first_nul_ = seen_ + nul;
    line_of_first_nul_ = lines_ + 1 + count_of(bytes.substr(0, nul), '\n');
  }
  nuls_ += count_of(bytes, '\0');
  if (nuls_ <= most) return;
  throw error(errc::invalid_argument,
              {"binary data in this input; earlier lines may have been processed",
               fmt::format("{}, line {}", shown_input(input_), app::count_text(line_of_first_nul_)), "lines of text",
               fmt::format("more than {} NUL bytes within 64 KiB, from offset {} on", most, first_nul_),
               "correct the input, or give --text to read it as lines anyway"});
}

}  // namespace bloomery::cli
