// layered_filter: the bits of layers in memory, their file, and lookups.
#include <bloomery/layered_filter.hpp>

#include <bloomery/detail/bits.hpp>
#include <bloomery/error.hpp>
#include <bloomery/layouts/sliding.hpp>

#include "file/format.hpp"
#include "file/layers_file.hpp"
#include "file/new_filter_file.hpp"
#include "platform/posix.hpp"
#include "registry/tables.hpp"

#include <array>
#include <limits>
#include <optional>
#include <utility>

namespace bloomery {
namespace {

constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

std::uint64_t bytes_of_all(std::span<const filter_layer> layers) {
  std::uint64_t bytes = 0;
  for (const filter_layer& layer : layers) bytes += layer.geometry.bits / 8;
  return bytes;
}

std::vector<filter_layer> checked(const layered_params& p, std::vector<filter_layer> layers) {
  if (const std::string problem = format::problem_of(p, layers); !problem.empty())
    throw error(errc::invalid_argument, {"invalid layers: " + problem, "layers", "", "", hint::none});
  return layers;
}

// Checks the secret given by the caller and adds it to the parameters.
void unlock(params& p, const open_options& options, const std::string& path) {
  if (p.key_check == 0 && options.secret) {
    throw error(errc::incompatible, {"the filter is not keyed", path, "", "", hint::leave_out_the_secret});
  }
  if (options.secret && key_check(*options.secret) != p.key_check) {
    throw error(errc::incompatible, {"the filter is keyed with another secret", path,
                                     "the key with check value " + key_check_text(p.key_check),
                                     key_check_text(key_check(*options.secret)), hint::give_the_secret});
  }
  if (p.key_check != 0 && !options.secret && !options.facts_only) {
    throw error(errc::incompatible,
                {"the filter is keyed with a secret", path, "the key with check value " + key_check_text(p.key_check),
                 "", hint::give_the_secret});
  }
  p.secret = options.secret;
}

}  // namespace

std::uint64_t expiry_of_slice(const window_length& window, std::uint64_t start) noexcept {
  constexpr std::uint64_t clocks_differ = 5'000;  // milliseconds
  return start + window_generations * window.slice_length() + clocks_differ;
}

layered_filter::layered_filter(layered_params p, std::vector<filter_layer> layers)
    : params_(std::move(p)),
      layers_(checked(params_, std::move(layers))),
      bytes_(bytes_of_all(layers_)),
      layout_(find_layout(params_.filter.layout)) {
  geometry& first = params_.filter.geometry;
  first = {0, layers_.front().geometry.probes};
  std::uint64_t offset = 0;
  const window_length window = params_.filter.window();
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    expiries_.push_back(params_.filter.has_window() ? expiry_of_slice(window, layers_[i].start) : never);
    if (layers_[i].shard == firsts_.size()) {
      firsts_.push_back(i);
      first.bits += layers_[i].geometry.bits;
    }
    offsets_.push_back(offset);
    offset += layers_[i].geometry.bits / 8;
  }
  firsts_.push_back(layers_.size());
}

layered_filter::layered_filter(layered_filter&&) noexcept = default;
layered_filter& layered_filter::operator=(layered_filter&&) noexcept = default;
layered_filter::~layered_filter() = default;

layered_filter layered_filter::open(const std::string& path, const open_options& options) {
  const posix::opened opened = posix::open_regular(path, false);
  const auto read = [&](std::span<std::uint8_t> into, std::uint64_t offset) {
    return posix::read_at(opened.file.get(), into, offset, path);
  };
  format::layers_header header = format::read_layers_header(read, opened.bytes, path);
  unlock(header.parameters.filter, options, path);
  layered_filter result(std::move(header.parameters), std::move(header.layers));
  if (read({result.bytes_.data(), result.bytes_.size()}, header.bits_at) != result.bytes_.size())
    throw error(errc::damaged, {"the file was truncated while it was read", path, "", "", hint::none});
  for (std::size_t i = 0; i < result.layers_.size(); ++i) {
    if (format::checksum(std::as_const(result).bytes_of(i)) == header.checksums[i]) continue;
    throw error(errc::damaged, {"the bits of layer " + std::to_string(i) + " do not match their checksum", path, "", "",
                                hint::restore_file});
  }
  return result;
}

void layered_filter::save(const std::string& path, const create_options& options) const {
  std::vector<std::uint64_t> checksums;
  for (std::size_t i = 0; i < layers_.size(); ++i) checksums.push_back(format::checksum(bytes_of(i)));
  const std::vector<std::uint8_t> head = format::encode_layers(params_, layers_, checksums);
  format::new_filter_file file(path, options);
  posix::write_all(file.fd(), head, path);
  posix::write_all(file.fd(), {bytes_.data(), bytes_.size()}, path);
  const std::string& metadata = params_.metadata;
  posix::write_all(file.fd(), {reinterpret_cast<const std::uint8_t*>(metadata.data()), metadata.size()}, path);
  file.publish();
}

std::span<const std::uint8_t> layered_filter::bytes_of(std::size_t layer) const noexcept {
  return {bytes_.data() + offsets_[layer], layers_[layer].geometry.bits / 8};
}

std::span<std::uint8_t> layered_filter::bytes_of(std::size_t layer) noexcept {
  return {bytes_.data() + offsets_[layer], layers_[layer].geometry.bits / 8};
}

std::uint64_t layered_filter::file_bytes() const noexcept { return format::layers_file_bytes(params_, layers_); }

std::uint64_t layered_filter::keys() const noexcept {
  std::uint64_t sum = 0;
  for (const filter_layer& layer : layers_) sum += layer.keys;
  return sum;
}

std::uint64_t layered_filter::shard_of(key_hash hash) const noexcept {
  return multiply_high(hash.hash64, params_.shards);
}

std::vector<std::uint64_t> layered_filter::cells(std::size_t layer, key_hash hash) const {
  const filter_layer& of = layers_[layer];
  std::vector<std::uint64_t> result(of.geometry.probes);
  // The layers of all shards, concatenated, are one filter. A key's line in it is in the part of the key's shard.
  layout_->cells({of.geometry.bits * params_.shards, of.geometry.probes}, hash, result.data());
  for (std::uint64_t& cell : result) cell -= of.shard * of.geometry.bits;
  return result;
}

bool layered_filter::may_contain(key_hash hash, std::uint64_t now) const {
  std::array<std::uint64_t, max_probes> cells;
  const std::uint64_t shard = shard_of(hash);
  for (std::size_t i = first_of(shard + 1); i-- > first_of(shard);) {  // most keys are in the newest layers
    if (expiries_[i] <= now && expiries_[i] != never) break;           // older slices have expired, too
    const geometry& g = layers_[i].geometry;
    layout_->cells({g.bits * params_.shards, g.probes}, hash, cells.data());
    const std::uint8_t* const bits = bytes_.data() + offsets_[i];
    std::uint32_t set = 0;
    while (set < g.probes && test_bit(bits, cells[set] - shard * g.bits)) ++set;
    if (set == g.probes) return true;
  }
  return false;
}

}  // namespace bloomery
