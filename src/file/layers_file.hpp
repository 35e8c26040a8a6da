// The file of a layered_filter. docs/format.md has the format.
#pragma once

#include <bloomery/detail/function_ref.hpp>
#include <bloomery/layered_filter.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace bloomery::format {

/// The contents of the header and of the table of layers.
struct layers_header {
  layered_params parameters;
  std::vector<filter_layer> layers;
  std::vector<std::uint64_t> checksums;  ///< of the bits of each layer
  std::uint64_t bits_at = 0;             ///< offset of the first layer's bits
  std::uint64_t bits_bytes = 0;          ///< of all layers
  std::uint64_t file_bytes = 0;
};

/// Reads at an offset and returns the number of bytes read.
using read_function = function_ref<std::size_t(std::span<std::uint8_t> into, std::uint64_t offset)>;

/// Whether a file that begins with these bytes is a file of layers.
bool is_layers_file(std::span<const std::uint8_t> start) noexcept;
bool is_layers_file(const std::string& path);

/// Reads everything except the bits and checks it, also against the length of the file.
/// @throws error  not_a_filter, wrong_version, damaged, incompatible (an unknown layout or hash)
layers_header read_layers_header(const read_function& read, std::uint64_t file_bytes, const std::string& path);

/// Whether a header belongs to a file of slices. Requires is_layers_file().
bool has_slices(std::span<const std::uint8_t> start) noexcept;

/// The conditions that all files and all layered_filter objects must meet. Returns the first violation; empty if there
/// is none.
std::string problem_of(const layered_params& p, std::span<const filter_layer> layers);

/// The length of the file. Requires layers without a problem.
std::uint64_t layers_file_bytes(const layered_params& p, std::span<const filter_layer> layers);

/// The header page and the table, padded to whole pages.
std::vector<std::uint8_t> encode_layers(const layered_params& p, std::span<const filter_layer> layers,
                                        std::span<const std::uint64_t> checksums);

/// The result of inspect() for a file of layers.
inspection inspect_layers(const std::string& path, file_check check);

}  // namespace bloomery::format
