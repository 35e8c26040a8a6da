// Fuzz target for the reader of files of Perl's Storable: arbitrary bytes are rejected or give a filter whose bits are
// in the file and that is written as a file which gives the same filter again, without undefined behavior.
#include <bloomery/detail/geometry.hpp>
#include <bloomery/error.hpp>
#include <bloomery/params.hpp>

#include "formats/format_row.hpp"

#include "mutation.hpp"
#include "require.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace bloomery;

const std::string path = "x.storable";

formats::head head_of(std::span<const std::uint8_t> file) {
  return {file.first(std::min(file.size(), formats::head::most_bytes)),
          file.last(std::min(file.size(), formats::head::most_last)), file.size(), path};
}

std::optional<formats::stored_layer> read(std::span<const std::uint8_t> file) {
  try {
    const formats::head head = head_of(file);
    formats::perl_row.read(head);
    return std::move(formats::perl_row.read_layers(head, file).front());
  } catch (const error& e) {
    const bool is_named = e.code() == errc::damaged || e.code() == errc::incompatible;
    require(is_named && e.text().where == path, "a file is refused as damaged or incompatible, with its path");
    return std::nullopt;
  }
}

std::span<const std::uint8_t> bits_of(const formats::stored_layer& filter) {
  return {filter.words.data(), static_cast<std::size_t>(filter.words.size())};
}

std::vector<std::uint8_t> written(const formats::stored_layer& filter) {
  const key_counts counts{.inserted = filter.keys};
  std::vector<std::uint8_t> file = formats::perl_row.write(filter.parameters, counts);
  file.insert(file.end(), bits_of(filter).begin(), bits_of(filter).end());
  const std::vector<std::uint8_t> end = formats::perl_row.write_end(filter.parameters, counts, 0);
  file.insert(file.end(), end.begin(), end.end());
  return file;
}

void check(const formats::stored_layer& filter, std::span<const std::uint8_t> file) {
  const params& p = filter.parameters;
  const auto bits = bits_of(filter);
  require(p.geometry.probes >= 1 && p.geometry.probes <= max_probes, "the number of probes is in its range");
  require(p.salts().empty() || p.salts().size() == p.geometry.probes, "each probe has a salt");
  require(bits.size() == bytes_for(p.geometry.bits), "the number of bytes matches the number of bits");
  require(p.geometry.bits % 8 == 0 || bits.back() >> p.geometry.bits % 8 == 0, "unused bits are 0");
  require(std::search(file.begin(), file.end(), bits.begin(), bits.end()) != file.end(), "the bits are in the file");

  const std::vector<std::uint8_t> text = written(filter);
  const std::optional<formats::stored_layer> again = read(text);
  require(again.has_value(), "a written file is read");
  require(again->parameters == p, "a filter has the same parameters after export and import");
  require(again->keys == filter.keys, "a filter has the same number of keys after export and import");
  require(std::ranges::equal(bits_of(*again), bits), "a filter has the same bits after export and import");
  require(written(*again) == text, "a filter is written alike again");
}

std::vector<std::uint8_t> some_file(bloomery_fuzz::choices& random) {
  params p;
  p.scheme = "perl";
  p.geometry = {1 + random.below(200), static_cast<std::uint32_t>(1 + random.below(10))};
  p.capacity = 1 + random.below(1000);
  p.target_fpr = 1.0 / static_cast<double>(2 + random.below(100));
  if (random.often(70)) {
    salt_list salts;
    for (std::uint32_t i = 0; i < p.geometry.probes; ++i)
      salts.values.push_back("0." + std::to_string(random.below(1000)));
    p.extra = salts;
  }
  formats::stored_layer filter{p, heap_storage(bytes_for(p.geometry.bits)), random.below(1000)};
  return written(filter);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> file(data, size);
  const std::optional<formats::stored_layer> filter = read(file);
  if (filter) check(*filter, file);
  return 0;
}

// Half of the inputs are valid files with one change: random bytes have no lengths that fit.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  bloomery_fuzz::choices random(seed);
  if (random.often(50)) return LLVMFuzzerMutate(data, size, max_size);
  const std::vector<std::uint8_t> file = some_file(random);
  if (file.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::copy(file.begin(), file.end(), data);
  if (random.often(20)) return file.size();
  if (random.often(50)) {
    data[random.below(file.size())] = static_cast<std::uint8_t>(random.below(random.often(50) ? 35 : 256));
    return file.size();
  }
  return LLVMFuzzerMutate(data, file.size(), max_size);
}
