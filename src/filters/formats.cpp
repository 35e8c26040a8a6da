// Filter files of other systems: recognition, import and export.
#include <bloomery/added_formats.hpp>
#include <bloomery/detail/file_magic.hpp>
#include <bloomery/formats.hpp>

#include "file/mapping.hpp"
#include "filters/any_filter_impl.hpp"
#include "filters/foreign_file.hpp"
#include "formats/format_row.hpp"
#include "formats/rdb.hpp"
#include "platform/posix.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace bloomery {
namespace {

constexpr std::size_t slice_bytes = std::size_t{1} << 20;  // whole words

// All formats, and how the added ones are read.
struct registry {
  std::vector<file_format> formats;
  added_formats added = {};
};

registry& all() {
  static registry table = [] {
    registry own;
    for (const formats::format_row& row : formats::format_rows())
      own.formats.push_back({row.name, row.system, row.schemes, row.has_metadata});
    return own;
  }();
  return table;
}

formats::head head_of(const posix::opened& file, const std::string& path) {
  std::array<std::uint8_t, formats::head::most_bytes> bytes;
  const std::size_t read = posix::read_at(file.file.get(), bytes, 0, path);
  std::array<std::uint8_t, formats::head::most_last> last;
  const auto known = static_cast<std::size_t>(std::min<std::uint64_t>(last.size(), file.bytes));
  const auto end = std::span(last).first(known);
  const std::size_t found = posix::read_at(file.file.get(), end, file.bytes - known, path);
  return {std::span(bytes).first(read), end.first(found), file.bytes, path};
}

void read_exactly(const posix::opened& file, std::span<std::uint8_t> into, std::uint64_t at, const std::string& path) {
  if (posix::read_at(file.file.get(), into, at, path) == into.size()) return;
  throw error(errc::damaged, {"the file was truncated while it was read", path, "", "", hint::try_again});
}

// The words of a file, in bloomery's order of bytes.
heap_storage read_words(const posix::opened& file, std::uint64_t at, std::uint64_t bits, const std::string& path) {
  heap_storage storage(bytes_for(bits));
  std::vector<std::uint8_t> slice(
      static_cast<std::size_t>(std::min<std::uint64_t>(slice_bytes, 8 * formats::words_for(bits))));
  for (std::uint64_t done = 0; done < storage.size(); done += slice.size()) {
    const std::uint64_t left = 8 * formats::words_for(bits) - done;
    const auto some = std::span(slice).first(static_cast<std::size_t>(std::min<std::uint64_t>(slice.size(), left)));
    read_exactly(file, some, at + done, path);
    formats::reverse_words(some);
    std::copy_n(some.begin(), std::min<std::uint64_t>(some.size(), storage.size() - done), storage.data() + done);
  }
  return storage;
}

[[noreturn]] void refuse_unknown(const formats::head& head) {
  const bool is_own =
      head.byte(0) == filter_magic[0] && head.byte(1) == filter_magic[1] && head.byte(2) == filter_magic[2];
  const bool is_gzip = head.byte(0) == 0x1F && head.byte(1) == 0x8B;
  const char* const found = head.file_bytes() == 0 ? "an empty file"
                            : is_own               ? "a file of bloomery"
                            : is_gzip              ? "a file compressed by gzip"
                                                   : "other bytes";
  std::string recognized;
  for (const file_format& format : file_formats()) {
    const formats::format_row* const row = formats::find_format(format.name);
    if (row == nullptr || row->is_recognized) recognized += (recognized.empty() ? "" : ", ") + std::string(format.name);
  }
  throw error(errc::not_a_filter, {"not a filter file of another system", head.path(), "one of " + recognized, found,
                                   is_own    ? "the file need not be converted"
                                   : is_gzip ? "decompress it first: gunzip"
                                             : "name the format to learn which part of the file does not fit"});
}

const file_format& format_of(std::string_view name) {
  if (const file_format* format = find_file_format(name)) return *format;
  throw error(errc::invalid_argument,
              {"unknown format", "format", "one of " + file_format_names(), "'" + std::string(name) + "'", hint::none});
}

// ---- import ---------------------------------------------------------------------------------------------------------

struct read_filter {
  std::string_view format;
  params parameters;
  std::variant<heap_storage, mapped_storage, formats::mapped_bits> bits;
  std::optional<std::uint64_t> keys = {};
  std::string metadata = {};
};

bool may_be_added(const formats::head& head) {
  return all().added.may_read != nullptr && all().added.may_read(head.bytes());
}

added_filter read_added(const posix::opened& file, std::string_view format, const std::string& path) {
  if (file.bytes > all().added.most_file_bytes) {
    throw error(errc::too_large, {"the file is too long for its format", path,
                                  "at most " + std::to_string(all().added.most_file_bytes) + " bytes",
                                  std::to_string(file.bytes), hint::none});
  }
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(file.bytes));
  read_exactly(file, bytes, 0, path);
  return all().added.read(bytes, format, path);
}

read_filter import_added(const foreign_file& from, std::string_view format, const std::string& path) {
  added_filter found = read_added(from.file, format, path);
  check_known(found.parameters, path);
  const std::uint64_t bytes = bytes_for(found.parameters.geometry.bits);
  if (found.bits.size() != bytes) {
    throw error(errc::incompatible, {"the reader returned another number of bytes than the geometry has", "bits",
                                     std::to_string(bytes), std::to_string(found.bits.size()), hint::none});
  }
  return {found.format, std::move(found.parameters), std::move(found.bits)};
}

read_filter import_row(const foreign_file& from, const std::string& path) {
  const auto& [file, head, row, found] = from;
  if (found.layers > 1) {
    throw error(errc::incompatible,
                {"the filter has grown, and its layers cannot be converted", path, "1 layer",
                 std::to_string(found.layers) + " layers",
                 "look up keys in this file, or add all keys to a filter with enough capacity (BF.RESERVE)"});
  }
  read_filter result{row->name, found.parameters, heap_storage(0), found.keys};
  if (row->read_layers != nullptr) {
    formats::stored_layer layer = std::move(from.read_layers().front());
    result.parameters = std::move(layer.parameters);
    result.bits = std::move(layer.words);
    result.keys = layer.keys;
  }
  check_known(result.parameters, path);
  if (row->read_layers != nullptr) return result;
  const std::uint64_t bits = found.parameters.geometry.bits;
  if (row->has_metadata) {
    const std::uint64_t end = found.bits_at + formats::stored_bytes(*row, bits);
    result.metadata.resize(static_cast<std::size_t>(file.bytes - end));
    read_exactly(file, {reinterpret_cast<std::uint8_t*>(result.metadata.data()), result.metadata.size()}, end, path);
  }
  if (found.is_empty)
    result.bits.emplace<heap_storage>(bytes_for(bits));
  else if (row->order == formats::byte_order::big_endian)
    result.bits = read_words(file, found.bits_at, bits, path);
  else
    result.bits.emplace<formats::mapped_bits>(file.file.get(), found.bits_at, bytes_for(bits), path);
  return result;
}

// ---- export ---------------------------------------------------------------------------------------------------------

// Passes the bits to `append` as the file has them, in slices.
template <class Append>
void write_bits(std::span<const std::uint8_t> bytes, std::uint64_t file_bytes, formats::byte_order order,
                Append append) {
  std::vector<std::uint8_t> slice;
  for (std::uint64_t done = 0; done < file_bytes; done += slice.size()) {
    slice.assign(static_cast<std::size_t>(std::min<std::uint64_t>(slice_bytes, file_bytes - done)), 0);
    const auto some = bytes.subspan(done, std::min<std::uint64_t>(slice.size(), bytes.size() - done));
    std::copy(some.begin(), some.end(), slice.begin());
    if (order == formats::byte_order::big_endian) formats::reverse_words(slice);
    append(slice);
  }
}

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace

// The row of a format that was named or recognized; null: an added one, or none.
foreign_file::foreign_file(const std::string& path, std::string_view format)
    : file(posix::open_regular(path, false)),
      head(head_of(file, path)),
      row(format.empty() ? formats::recognize(head) : formats::find_format(format_of(format).name)) {
  if (row != nullptr)
    found = row->read(head);
  else if (format.empty() && !may_be_added(head))
    refuse_unknown(head);
}

std::vector<formats::stored_layer> foreign_file::read_layers() const {
  const mapping whole(file.file.get(), file.bytes, false, head.path());
  return row->read_layers(head, {whole.at, static_cast<std::size_t>(file.bytes)});
}

void add_formats(const added_formats& formats) {
  registry& table = all();
  table.formats.resize(formats::format_rows().size());
  table.formats.insert(table.formats.end(), formats.formats.begin(), formats.formats.end());
  table.added = formats;
}

std::span<const file_format> file_formats() noexcept { return all().formats; }

const file_format* find_file_format(std::string_view name) noexcept {
  const auto rows = file_formats();
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const file_format& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

std::string file_format_names() { return names_of(file_formats()); }

const file_format* recognize_format(const std::string& path) {
  const posix::opened file = posix::open_regular(path, false);
  const formats::head head = head_of(file, path);
  if (const formats::format_row* row = formats::recognize(head)) return find_file_format(row->name);
  if (!may_be_added(head)) return nullptr;
  try {
    return find_file_format(read_added(file, {}, path).format);
  } catch (const error& e) {
    if (e.code() == errc::io) throw;
    return nullptr;  // not of these formats
  }
}

any_filter import_filter(const std::string& path, std::string_view format) {
  const foreign_file from(path, format);
  read_filter read = from.row != nullptr ? import_row(from, path) : import_added(from, format, path);
  auto made = std::make_unique<any_filter::impl>(read.parameters, std::move(read.bits));
  made->make_read_only();
  // Other systems count merges differently, so their numbers of keys are estimates. Each new key sets a bit at least.
  if (read.keys && *read.keys <= read.parameters.geometry.bits)
    *made->counts = {.inserted = *read.keys, .is_estimate = true};
  else
    made->estimate_count();
  made->opened_from = file_info{.parameters = std::move(read.parameters),
                                .counts = *made->counts,
                                .metadata = std::move(read.metadata),
                                .file_bytes = from.file.bytes,
                                .format = std::string(read.format)};
  return any_filter(std::move(made));
}

void export_filter(const any_filter& filter, const std::string& path, std::string_view format,
                   const create_options& options) {
  const file_format& target = format_of(format);
  const params& p = filter.parameters();
  if (!formats::has_scheme(target.schemes, p.scheme)) {
    throw error(errc::incompatible,
                {"the format has no filters of this kind", "format " + std::string(format),
                 "scheme " + std::string(target.schemes),
                 p.scheme.empty() ? "layout " + p.layout : "scheme " + p.scheme, hint::rebuild_with_scheme});
  }
  if (!options.metadata.empty() && !target.has_metadata) {
    throw error(errc::incompatible, {"the format does not store metadata", path, "no metadata",
                                     std::to_string(options.metadata.size()) + " bytes", hint::none});
  }
  filter.verify();
  const std::span<const std::uint8_t> bytes = filter.bytes();
  const formats::format_row* const row = formats::find_format(format);
  const bool has_words =
      row != nullptr && (row->write_empty == nullptr || std::any_of(bytes.begin(), bytes.end(), std::identity()));
  std::string added;
  std::vector<std::uint8_t> beginning;
  if (row == nullptr)
    added = all().added.write(format, p, bytes);
  else
    beginning = has_words ? row->write(p, filter.counts()) : row->write_empty(p);
  posix::replacement file(path, {.replace = options.replace, .lock = posix::locking::if_possible});
  const bool has_end = row != nullptr && row->write_end != nullptr;
  std::uint64_t crc = 0;
  const auto append = [&](std::span<const std::uint8_t> some) {
    if (has_end) crc = rdb::crc64(crc, some);
    posix::write_all(file.fd(), some, path);
  };
  append(row == nullptr ? bytes_of(added) : beginning);
  if (has_words) write_bits(bytes, formats::stored_bytes(*row, p.geometry.bits), row->order, append);
  append(bytes_of(options.metadata));
  if (has_end) append(row->write_end(p, filter.counts(), crc));
  file.publish(options.sync);
}

}  // namespace bloomery
