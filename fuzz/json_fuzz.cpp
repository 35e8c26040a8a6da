// Fuzz target for the readers of JSON filter files: arbitrary bytes are rejected or give a filter that is written as
// text which gives the same filter again, without undefined behavior.
#include "app/json_formats.hpp"

#include <bloomery/detail/geometry.hpp>
#include <bloomery/error.hpp>
#include <bloomery/scheme.hpp>

#include "mutation.hpp"
#include "require.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace bloomery;

const added_formats json = app::json_formats();
const std::string path = "x.json";

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::span<const std::uint8_t> bits_of(const added_filter& filter) { return {filter.bits.data(), filter.bits.size()}; }

std::optional<added_filter> read(std::span<const std::uint8_t> text, std::string_view format) {
  try {
    return json.read(text, format, path);
  } catch (const error& e) {
    const bool is_named = e.code() == errc::damaged || (format.empty() && e.code() == errc::not_a_filter);
    require(is_named && e.text().where == path, "a text is refused as damaged or as no filter, with its path");
    return std::nullopt;
  }
}

void check(const added_filter& filter, std::size_t text_bytes) {
  const params& p = filter.parameters;
  const auto bits = bits_of(filter);
  const auto format =
      std::ranges::find_if(json.formats, [&](const file_format& row) { return row.name == filter.format; });
  require(format->schemes == p.scheme, "the format has filters of this scheme");
  find_scheme(p.scheme)->check(p.geometry);
  require(bits.size() == bytes_for(p.geometry.bits), "the number of bytes matches the number of bits");
  require(bits.size() <= 2 * text_bytes, "no more memory than in proportion to the text");
  require(p.geometry.bits % 8 == 0 || bits.back() >> p.geometry.bits % 8 == 0, "unused bits are 0");

  const std::string text = json.write(filter.format, p, bits);
  require(json.may_read(bytes_of(text)), "a written text is recognized");
  const std::optional<added_filter> again = read(bytes_of(text), "");
  require(again && again->format == filter.format, "a written text is read");
  require(again->parameters == p, "a filter has the same parameters after export and import");
  require(std::ranges::equal(bits_of(*again), bits), "a filter has the same bits after export and import");
}

// A text of a filter that is too small for its description to be hidden in base64.
std::string some_text(bloomery_fuzz::choices& random) {
  const file_format& format = json.formats[random.below(json.formats.size())];
  params p;
  p.scheme = format.schemes;
  p.geometry = {1 + random.below(200), static_cast<std::uint32_t>(1 + random.below(20))};
  if (p.scheme == "bloomfilter_js") p.geometry.bits = (p.geometry.bits + 31) / 32 * 32;
  p.seed = random.often(50) ? 0 : random.below(10);
  std::vector<std::uint8_t> bits(bytes_for(p.geometry.bits));
  for (std::uint8_t& byte : bits) byte = static_cast<std::uint8_t>(random.below(256));
  if (p.geometry.bits % 8 != 0) bits.back() &= static_cast<std::uint8_t>((1 << p.geometry.bits % 8) - 1);
  return json.write(format.name, p, bits);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> text(data, size);
  const std::optional<added_filter> any = read(text, "");
  std::size_t readers = 0;
  for (const file_format& format : json.formats) {
    const std::optional<added_filter> found = read(text, format.name);
    if (!found) continue;
    ++readers;
    require(any && any->format == format.name, "a text with a reader is recognized");
    check(*found, size);
  }
  require(readers == (any ? 1 : 0), "a recognized text has exactly one reader");
  return 0;
}

// Half of the inputs are valid texts with one change: random bytes have no lengths that fit.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  bloomery_fuzz::choices random(seed);
  if (random.often(50)) return LLVMFuzzerMutate(data, size, max_size);
  const std::string text = some_text(random);
  if (text.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::copy(text.begin(), text.end(), data);
  if (random.often(20)) return text.size();
  if (random.often(50)) {
    data[random.below(text.size())] = static_cast<std::uint8_t>("0123456789\"{}[],:.-_ Az=\\e"[random.below(26)]);
    return text.size();
  }
  return LLVMFuzzerMutate(data, text.size(), max_size);
}
