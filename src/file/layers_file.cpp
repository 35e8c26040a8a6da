// The file of a layered_filter: encoding, decoding and checks of layers and slices.
#include "file/layers_file.hpp"

#include <bloomery/detail/file_magic.hpp>
#include <bloomery/error.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/layout.hpp>

#include "file/fields.hpp"
#include "file/format.hpp"
#include "platform/machine.hpp"
#include "platform/posix.hpp"
#include "registry/tables.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <utility>

namespace bloomery::format {
namespace {

constexpr const file_magic& magic = layers_magic;
constexpr std::uint32_t layers_version = 1;
constexpr std::uint32_t slices_version = 2;  // the layers are slices of a window

// Offsets of the header's fields.
constexpr std::size_t at_version = 8;
constexpr std::size_t at_header_bytes = 12;
constexpr std::size_t at_layout = 16;
constexpr std::size_t at_hash = 48;
constexpr std::size_t at_key_kind = 80;
constexpr std::size_t at_is_shared = 84;
constexpr std::size_t at_seed = 88;
constexpr std::size_t at_key_check = 96;
constexpr std::size_t at_capacity = 104;
constexpr std::size_t at_target_rate = 112;
constexpr std::size_t at_maximum = 120;
constexpr std::size_t at_shards = 128;
constexpr std::size_t at_layers = 136;
constexpr std::size_t at_table_checksum = 144;
constexpr std::size_t at_metadata_bytes = 152;
constexpr std::size_t at_metadata_checksum = 160;
constexpr std::size_t at_file_bytes = 168;
constexpr std::size_t at_window = 176;  // this and the next two: version 2
constexpr std::size_t at_slice = 184;
constexpr std::size_t at_copied = 192;
constexpr std::size_t at_reserved = 200;
constexpr std::size_t at_checksum = 4088;

// Offsets of a layer's fields in the table.
constexpr std::size_t entry_bytes = 48;
constexpr std::size_t at_shard = 0;
constexpr std::size_t at_bits = 8;
constexpr std::size_t at_probes = 16;
constexpr std::size_t at_zeros = 20;
constexpr std::size_t at_layer_capacity = 24;
constexpr std::size_t at_keys = 32;   // version 1
constexpr std::size_t at_start = 32;  // version 2
constexpr std::size_t at_layer_checksum = 40;

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t longest_window = (std::uint64_t{1} << 53) - 1;  // milliseconds
constexpr std::uint64_t latest = std::uint64_t{1} << 58;                // milliseconds since 1970

[[noreturn]] void damaged(const std::string& path, std::string what, std::string expected = {},
                          std::string found = {}) {
  throw error(errc::damaged, {std::move(what), path, std::move(expected), std::move(found), hint::restore_file});
}

// The end of the table, in whole pages. Requires at most 2^58 layers.
constexpr std::uint64_t bits_at_for(std::uint64_t layers) {
  const std::uint64_t end = header_bytes + entry_bytes * layers;
  return (end + page_bytes - 1) / page_bytes * page_bytes;
}

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string problem_of_filter(const layered_params& p, const layout_row& layout) {
  const params& f = p.filter;
  if (!layout.may_be_shared || family_of(f) != family::plain)
    return "a layout that does not support growth: " + f.layout;
  const hash_row* const hash = find_hash(f.hash);
  if (hash == nullptr) return "an unknown hash";
  if (f.keys != key_kind::u64le && !hash->takes_bytes) return "a hash of integers for text";
  if (f.seed > hash->most_seed) return "the seed is too large for the hash";
  if (hash->keyed != (f.key_check != 0)) return "the check value of the secret does not match the hash";
  if (!(f.target_fpr > 0 && f.target_fpr < 1)) return "the target FPR is not a probability";
  if (f.log_id() != 0) return "a filter with a log";
  if (p.shards == 0 || p.shards > layered_filter::most_shards) return "the number of shards is out of range";
  if (!p.is_shared && (p.shards != 1 || p.maximum != 0))
    return "several shards or a maximum in a filter that is not shared";
  if (p.metadata.size() > most_metadata) return "more than 1 MiB of metadata";
  if (!f.has_window()) return p.copied_at == 0 ? "" : "a time of copying without a window";
  if (!p.is_shared || p.maximum != 0) return "a window in a filter that grows";
  if (!f.window().by_time()) return "a window of keys";
  if (f.window().count == 0 || f.window().count > longest_window) return "the length of the window is out of range";
  if (p.copied_at > latest) return "a time of copying above 2^58 ms";
  return "";
}

// @param before  the layer before this one in its shard, or null
std::string problem_of_slice(const layered_params& p, const filter_layer& layer, const filter_layer* before,
                             const filter_layer& first) {
  const window_length window = p.filter.window();
  if (layer.geometry != first.geometry || layer.capacity != first.capacity) return "slices of different sizes";
  if (layer.keys != 0) return "a slice with a number of keys";
  if (layer.start > p.copied_at + window.slice_length()) return "a slice that begins after the copy was made";
  if (layer.start % window.slice_length() != 0) return "a slice that begins within another one";
  if (before != nullptr && layer.start <= before->start) return "slices out of order";
  if (expiry_of_slice(window, layer.start) <= p.copied_at) return "a slice that had expired when it was copied";
  return "";
}

std::string problem_of_layer(const geometry& g, std::uint64_t shards, const layout_row& layout) {
  if (g.bits == 0 || g.bits % cache_line_bits != 0 || g.bits > most / shards)
    return "the size of a layer is out of range";
  if (g.probes == 0 || g.probes > max_probes) return "the number of probes is out of range";
  if (layout.fixed_probes != 0 && g.probes != layout.fixed_probes)
    return "the number of probes differs from that of the layout";
  try {
    layout.check({g.bits * shards, g.probes});
  } catch (const error& e) {
    return e.text().what;
  }
  return "";
}

void read_all(const read_function& read, std::span<std::uint8_t> into, std::uint64_t offset, const std::string& path) {
  if (read(into, offset) != into.size()) damaged(path, "the file was truncated while it was read");
}

}  // namespace

bool is_layers_file(std::span<const std::uint8_t> start) noexcept {
  return start.size() >= magic.size() && std::equal(magic.begin(), magic.end(), start.begin());
}

bool has_slices(std::span<const std::uint8_t> start) noexcept {
  return start.size() >= at_header_bytes && get<std::uint32_t>(start, at_version) == slices_version;
}

bool is_layers_file(const std::string& path) {
  const posix::opened opened = posix::open_regular(path, false);
  file_magic start{};
  return is_layers_file(std::span(start).first(posix::read_at(opened.file.get(), start, 0, path)));
}

std::string problem_of(const layered_params& p, std::span<const filter_layer> layers) {
  const layout_row* const layout = find_layout(p.filter.layout);
  if (layout == nullptr) return "an unknown layout";
  if (std::string problem = problem_of_filter(p, *layout); !problem.empty()) return problem;
  std::uint64_t shard = most;
  std::size_t of_shard = 0;
  std::uint64_t bytes = 0;
  std::uint64_t keys = 0;
  const filter_layer* before = nullptr;
  for (const filter_layer& layer : layers) {
    of_shard = layer.shard == shard ? of_shard + 1 : 1;
    if (of_shard == 1) before = nullptr;
    if (layer.shard != shard && layer.shard != shard + 1) return "a shard without a layer";
    if (of_shard > layered_filter::most_layers) return "a shard with more than 64 layers";
    shard = layer.shard;
    if (std::string problem = problem_of_layer(layer.geometry, p.shards, *layout); !problem.empty()) return problem;
    if (layer.keys > most / 2 - keys || layer.geometry.bits / 8 > most / 2 - bytes)
      return "the total size of the layers is out of range";
    if (p.filter.has_window()) {
      if (std::string problem = problem_of_slice(p, layer, before, layers.front()); !problem.empty()) return problem;
    } else if (layer.start != 0) {
      return "a slice without a window";
    }
    before = &layer;
    keys += layer.keys;
    bytes += layer.geometry.bits / 8;
  }
  if (shard != p.shards - 1) return "a shard without a layer";
  return "";
}

std::uint64_t layers_file_bytes(const layered_params& p, std::span<const filter_layer> layers) {
  std::uint64_t bytes = bits_at_for(layers.size()) + p.metadata.size();
  for (const filter_layer& layer : layers) bytes += layer.geometry.bits / 8;
  return bytes;
}

std::vector<std::uint8_t> encode_layers(const layered_params& p, std::span<const filter_layer> layers,
                                        std::span<const std::uint64_t> checksums) {
  std::vector<std::uint8_t> result(bits_at_for(layers.size()));
  const std::span<std::uint8_t> table = std::span(result).subspan(header_bytes, entry_bytes * layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::span<std::uint8_t> entry = table.subspan(entry_bytes * i, entry_bytes);
    put(entry, at_shard, layers[i].shard);
    put(entry, at_bits, layers[i].geometry.bits);
    put(entry, at_probes, layers[i].geometry.probes);
    put(entry, at_layer_capacity, layers[i].capacity);
    p.filter.has_window() ? put(entry, at_start, layers[i].start) : put(entry, at_keys, layers[i].keys);
    put(entry, at_layer_checksum, checksums[i]);
  }
  const params& f = p.filter;
  const std::span<std::uint8_t> header = std::span(result).first(header_bytes);
  std::copy(magic.begin(), magic.end(), header.begin());
  put(header, at_version, f.has_window() ? slices_version : layers_version);
  put(header, at_header_bytes, static_cast<std::uint32_t>(header_bytes));
  std::copy(f.layout.begin(), f.layout.end(), header.begin() + at_layout);  // known names, which are short
  std::copy(f.hash.begin(), f.hash.end(), header.begin() + at_hash);
  put(header, at_key_kind, static_cast<std::uint32_t>(f.keys));
  put(header, at_is_shared, std::uint32_t{p.is_shared});
  put(header, at_seed, f.seed);
  put(header, at_key_check, f.key_check);
  put(header, at_capacity, f.capacity);
  put(header, at_target_rate, f.target_fpr);
  put(header, at_maximum, p.maximum);
  put(header, at_shards, p.shards);
  put(header, at_layers, std::uint64_t{layers.size()});
  put(header, at_table_checksum, checksum(table));
  put(header, at_metadata_bytes, std::uint64_t{p.metadata.size()});
  put(header, at_metadata_checksum, checksum(bytes_of(p.metadata)));
  put(header, at_file_bytes, layers_file_bytes(p, layers));
  if (f.has_window()) {
    put(header, at_window, f.window().milliseconds());
    put(header, at_slice, f.window().slice_length());
    put(header, at_copied, p.copied_at);
  }
  put(header, at_checksum, checksum(header.first(at_checksum)));
  return result;
}

layers_header read_layers_header(const read_function& read, std::uint64_t file_bytes, const std::string& path) {
  page header{};
  const std::size_t got = read(header, 0);
  if (!is_layers_file(std::span(header).first(got))) {
    throw error(errc::not_a_filter, {"not a file of filter layers", path, "a file that starts with 89 'BLMG'",
                                     "other bytes", hint::make_a_filter});
  }
  if (got < header_bytes)
    damaged(path, "the file is truncated within its header", "4096 bytes of header", std::to_string(got));
  const auto found_version = get<std::uint32_t>(header, at_version);
  if (found_version != layers_version && found_version != slices_version) {
    throw error(errc::wrong_version, {"unsupported file version", path, "version 1 or 2", std::to_string(found_version),
                                      hint::use_its_version});
  }
  const bool is_window = found_version == slices_version;
  if (get<std::uint64_t>(header, at_checksum) != checksum(std::span(header).first(at_checksum)))
    damaged(path, "the header does not match its checksum");
  if (get<std::uint32_t>(header, at_header_bytes) != header_bytes)
    damaged(path, "length of the header", "4096", "another length");

  layers_header result;
  layered_params& p = result.parameters;
  params& f = p.filter;
  const std::optional<std::string> layout = name_at(header, at_layout), hash = name_at(header, at_hash);
  if (!layout || !hash) damaged(path, "a name in the header is unreadable");
  f.layout = *layout;
  f.hash = *hash;
  const auto kind = get<std::uint32_t>(header, at_key_kind);
  const auto is_shared = get<std::uint32_t>(header, at_is_shared);
  if (kind > 1) damaged(path, "kind of keys", "0 or 1", std::to_string(kind));
  if (is_shared > 1) damaged(path, "origin of the layers", "0 or 1", std::to_string(is_shared));
  f.keys = static_cast<key_kind>(kind);
  p.is_shared = is_shared == 1;
  f.seed = get<std::uint64_t>(header, at_seed);
  f.key_check = get<std::uint64_t>(header, at_key_check);
  f.capacity = get<std::uint64_t>(header, at_capacity);
  f.target_fpr = get<double>(header, at_target_rate);
  p.maximum = get<std::uint64_t>(header, at_maximum);
  p.shards = get<std::uint64_t>(header, at_shards);
  const std::size_t reserved = is_window ? at_reserved : at_window;
  if (!all_zero(std::span<const std::uint8_t>(header).subspan(reserved, at_checksum - reserved)))
    damaged(path, "reserved bytes of the header", "zeros", "other bytes");
  if (is_window) {
    const window_length window = window_of_milliseconds(get<std::uint64_t>(header, at_window));
    const auto slice = get<std::uint64_t>(header, at_slice);
    if (slice != window.slice_length())
      damaged(path, "length of a slice", std::to_string(window.slice_length()) + " ms", std::to_string(slice) + " ms");
    f.extra = window;
    p.copied_at = get<std::uint64_t>(header, at_copied);
  }

  // The table, the bits and the metadata are in the file, so no larger allocation than its length follows.
  const auto layers = get<std::uint64_t>(header, at_layers);
  const auto metadata_bytes = get<std::uint64_t>(header, at_metadata_bytes);
  if (metadata_bytes > most_metadata || metadata_bytes > file_bytes)
    damaged(path, "length of the metadata", "at most 1 MiB, and less than the file", std::to_string(metadata_bytes));
  if (get<std::uint64_t>(header, at_file_bytes) != file_bytes) {
    damaged(path, "length of the file", std::to_string(get<std::uint64_t>(header, at_file_bytes)) + " bytes",
            std::to_string(file_bytes));
  }
  if (layers == 0 || layers > file_bytes / entry_bytes || bits_at_for(layers) > file_bytes - metadata_bytes)
    damaged(path, "the number of layers does not match the length of the file");
  result.bits_at = bits_at_for(layers);
  result.bits_bytes = file_bytes - metadata_bytes - result.bits_at;
  result.file_bytes = file_bytes;

  std::vector<std::uint8_t> bytes(result.bits_at - header_bytes);
  read_all(read, bytes, header_bytes, path);
  const std::span<const std::uint8_t> table = std::span(bytes).first(entry_bytes * layers);
  if (checksum(table) != get<std::uint64_t>(header, at_table_checksum))
    damaged(path, "the table of layers does not match its checksum");
  if (!all_zero(std::span(bytes).subspan(table.size())))
    damaged(path, "bytes after the table of layers", "zeros", "other bytes");
  for (std::uint64_t i = 0; i < layers; ++i) {
    const auto entry = table.subspan(entry_bytes * i, entry_bytes);
    if (get<std::uint32_t>(entry, at_zeros) != 0) damaged(path, "reserved bytes of the table", "zeros", "other bytes");
    result.layers.push_back({get<std::uint64_t>(entry, at_shard),
                             {get<std::uint64_t>(entry, at_bits), get<std::uint32_t>(entry, at_probes)},
                             get<std::uint64_t>(entry, at_layer_capacity),
                             is_window ? 0 : get<std::uint64_t>(entry, at_keys),
                             is_window ? get<std::uint64_t>(entry, at_start) : 0});
    result.checksums.push_back(get<std::uint64_t>(entry, at_layer_checksum));
  }
  p.metadata.resize(metadata_bytes);
  const std::span metadata(reinterpret_cast<std::uint8_t*>(p.metadata.data()), p.metadata.size());
  read_all(read, metadata, result.bits_at + result.bits_bytes, path);
  if (checksum(metadata) != get<std::uint64_t>(header, at_metadata_checksum))
    damaged(path, "the metadata does not match its checksum");
  if (const std::string problem = problem_of(p, result.layers); !problem.empty())
    damaged(path, "the header contradicts itself: " + problem);
  if (layers_file_bytes(p, result.layers) != file_bytes)
    damaged(path, "length of the layers", std::to_string(layers_file_bytes(p, result.layers)) + " bytes of file",
            std::to_string(file_bytes));
  f.geometry = {0, result.layers.front().geometry.probes};
  for (std::size_t i = 0; i < layers; ++i) {
    const bool is_first = i == 0 || result.layers[i].shard != result.layers[i - 1].shard;
    if (is_first) f.geometry.bits += result.layers[i].geometry.bits;
  }
  return result;
}

inspection inspect_layers(const std::string& path, file_check check) {
  inspection result;
  const posix::opened opened = posix::open_regular(path, false);
  const auto read = [&](std::span<std::uint8_t> into, std::uint64_t offset) {
    return posix::read_at(opened.file.get(), into, offset, path);
  };
  const layers_header header = read_layers_header(read, opened.bytes, path);
  result.info.parameters = header.parameters.filter;
  result.info.metadata = header.parameters.metadata;
  result.info.file_bytes = header.file_bytes;
  for (const filter_layer& layer : header.layers) result.info.counts.inserted += layer.keys;
  if (check == file_check::payload)
    static_cast<void>(layered_filter::open(path, {.facts_only = true}));  // throws for the first damaged layer
  result.usable = true;
  return result;
}

}  // namespace bloomery::format
