// Filter files of other systems: recognition, import and export.
#include <bloomery/formats.hpp>

#include <bloomery/detail/file_magic.hpp>

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
#include <utility>
#include <vector>

namespace bloomery {
namespace {

constexpr std::size_t slice_bytes = std::size_t{1} << 20;  // whole words

formats::head head_of(const posix::opened& file, const std::string& path) {
  std::array<std::uint8_t, formats::head::most_bytes> bytes;
  const std::size_t read = posix::read_at(file.file.get(), bytes, 0, path);
  return {std::span(bytes).first(read), file.bytes, path};
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
  throw error(errc::not_a_filter,
              {"not a filter file of another system", head.path(), "one of " + file_format_names(), found,
               is_own    ? "the file need not be converted"
               : is_gzip ? "decompress it first: gunzip"
                         : "name the format to learn which part of the file does not fit"});
}

const formats::format_row& row_of(std::string_view name) {
  if (const formats::format_row* row = formats::find_format(name)) return *row;
  throw error(errc::invalid_argument,
              {"unknown format", "format", "one of " + file_format_names(), "'" + std::string(name) + "'", hint::none});
}

const formats::format_row& row_of(const formats::head& head, std::string_view format) {
  if (!format.empty()) return row_of(format);
  if (const formats::format_row* row = formats::recognize(head)) return *row;
  refuse_unknown(head);
}

}  // namespace

foreign_file::foreign_file(const std::string& path, std::string_view format)
    : file(posix::open_regular(path, false)),
      head(head_of(file, path)),
      row(&row_of(head, format)),
      found(row->read(head)) {}

std::vector<formats::stored_layer> foreign_file::read_layers() const {
  const mapping whole(file.file.get(), file.bytes, false, head.path());
  return row->read_layers(head, {whole.at, static_cast<std::size_t>(file.bytes)});
}

std::span<const file_format> file_formats() noexcept {
  static const auto rows = [] {
    std::vector<file_format> list;
    for (const formats::format_row& row : formats::format_rows())
      list.push_back({row.name, row.system, row.schemes, row.has_metadata});
    return list;
  }();
  return rows;
}

const file_format* find_file_format(std::string_view name) noexcept {
  const auto rows = file_formats();
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const file_format& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

std::string file_format_names() { return names_of(formats::format_rows()); }

const file_format* recognize_format(const std::string& path) {
  const formats::format_row* row = formats::recognize(head_of(posix::open_regular(path, false), path));
  return row == nullptr ? nullptr : find_file_format(row->name);
}

any_filter import_filter(const std::string& path, std::string_view format) {
  const foreign_file from(path, format);
  const auto& [file, head, row, found] = from;
  params p = found.parameters;
  check_known(p, path);
  if (found.layers > 1) {
    throw error(errc::incompatible,
                {"the filter has grown, and its layers cannot be converted", path, "1 layer",
                 std::to_string(found.layers) + " layers",
                 "look up keys in this file, or add all keys to a filter with enough capacity (BF.RESERVE)"});
  }
  const std::uint64_t bits = p.geometry.bits;
  file_info info{
      .parameters = p, .counts = {}, .metadata = {}, .file_bytes = file.bytes, .format = std::string(row->name)};
  if (row->has_metadata) {
    const std::uint64_t end = found.bits_at + 8 * formats::words_for(bits);
    info.metadata.resize(static_cast<std::size_t>(file.bytes - end));
    read_exactly(file, {reinterpret_cast<std::uint8_t*>(info.metadata.data()), info.metadata.size()}, end, path);
  }
  const bool reversed = row->order == formats::byte_order::big_endian;
  using storage = decltype(any_filter::impl::storage);
  storage words = found.is_empty                ? storage(heap_storage(bytes_for(bits)))
                  : row->read_layers != nullptr ? storage(std::move(from.read_layers().front().words))
                  : reversed                    ? storage(read_words(file, found.bits_at, bits, path))
                             : storage(formats::mapped_bits(file.file.get(), found.bits_at, bytes_for(bits), path));
  auto made = std::make_unique<any_filter::impl>(std::move(p), std::move(words));
  made->make_read_only();
  // Other systems count merges differently, so their numbers of keys are estimates. Each new key sets a bit at least.
  if (found.keys && *found.keys <= bits)
    *made->counts = {.inserted = *found.keys, .is_estimate = true};
  else
    made->estimate_count();
  info.counts = *made->counts;
  made->opened_from = std::move(info);
  return any_filter(std::move(made));
}

void export_filter(const any_filter& filter, const std::string& path, std::string_view format,
                   const create_options& options) {
  const formats::format_row& row = row_of(format);
  const params& p = filter.parameters();
  if (!formats::has_scheme(row, p.scheme)) {
    throw error(errc::incompatible,
                {"the format has no filters of this kind", "format " + std::string(format),
                 "scheme " + std::string(row.schemes), p.scheme.empty() ? "layout " + p.layout : "scheme " + p.scheme,
                 hint::rebuild_with_scheme});
  }
  if (!options.metadata.empty() && !row.has_metadata) {
    throw error(errc::incompatible, {"the format does not store metadata", path, "no metadata",
                                     std::to_string(options.metadata.size()) + " bytes", hint::none});
  }
  filter.verify();
  const std::span<const std::uint8_t> bytes = filter.bytes();
  const bool has_words = row.write_empty == nullptr || std::any_of(bytes.begin(), bytes.end(), std::identity());
  const std::vector<std::uint8_t> beginning = has_words ? row.write(p, filter.counts()) : row.write_empty(p);
  posix::replacement file(path, {.replace = options.replace, .lock = posix::locking::if_possible});
  std::uint64_t crc = 0;
  const auto append = [&](std::span<const std::uint8_t> some) {
    if (row.write_end != nullptr) crc = rdb::crc64(crc, some);
    posix::write_all(file.fd(), some, path);
  };
  append(beginning);
  const std::uint64_t file_bytes = has_words ? 8 * formats::words_for(p.geometry.bits) : 0;
  std::vector<std::uint8_t> slice;
  for (std::uint64_t done = 0; done < file_bytes; done += slice.size()) {
    slice.assign(static_cast<std::size_t>(std::min<std::uint64_t>(slice_bytes, file_bytes - done)), 0);
    const auto some = bytes.subspan(done, std::min<std::uint64_t>(slice.size(), bytes.size() - done));
    std::copy(some.begin(), some.end(), slice.begin());
    if (row.order == formats::byte_order::big_endian) formats::reverse_words(slice);
    append(slice);
  }
  append({reinterpret_cast<const std::uint8_t*>(options.metadata.data()), options.metadata.size()});
  if (row.write_end != nullptr) append(row.write_end(filter.counts(), crc));
  file.publish(options.sync);
}

}  // namespace bloomery
