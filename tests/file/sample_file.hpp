// A sample filter and its file, and ways to read and change bytes of a file.
//
// Offsets are those of docs/format.md: a header of 4096 bytes, pages of payload, 8 bytes of checksum per page,
// metadata.
#pragma once

#include <bloomery/any_filter.hpp>

#include "file/format.hpp"
#include "support/test.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace bloomery_tests {

inline constexpr std::size_t page = 4096;
inline constexpr std::size_t slot_offsets[] = {512, 1024};

inline std::vector<std::string> sample_texts(std::size_t count = 500) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) texts.push_back("key-" + std::to_string(i));
  return texts;
}

// Three pages of payload; the last page is partly used.
inline const bloomery::params sample_params = bloomery::complete(
    {.layout = "classic", .hash = "xxh3", .geometry = {80'001, 7}, .capacity = 8000, .target_fpr = 0.01});

inline bloomery::any_filter sample_filter() {
  bloomery::any_filter sample(sample_params);
  for (const std::string& text : sample_texts()) sample.insert(text);
  return sample;
}

inline void save_sample(const std::string& path) { sample_filter().save(path, "made by a test"); }

/// A folder with the sample as its file "f".
class folder_with_sample : public scratch_folder {
 public:
  folder_with_sample() { save_sample(*this / "f"); }
};

inline bool has_all_samples(const bloomery::any_filter& filter) {
  const auto texts = sample_texts();
  return std::all_of(texts.begin(), texts.end(), [&](const std::string& text) { return filter.may_contain(text); });
}

// A file whose bytes can be changed one at a time.
class patched_file {
 public:
  explicit patched_file(const std::string& path) : fd_(::open(path.c_str(), O_RDWR | O_CLOEXEC)) {}
  patched_file(const patched_file&) = delete;
  patched_file& operator=(const patched_file&) = delete;
  ~patched_file() { ::close(fd_); }

  void flip(std::size_t offset, unsigned mask) const {
    std::uint8_t byte = 0;
    ASSERT_EQ(::pread(fd_, &byte, 1, static_cast<off_t>(offset)), 1);
    byte ^= static_cast<std::uint8_t>(mask);
    ASSERT_EQ(::pwrite(fd_, &byte, 1, static_cast<off_t>(offset)), 1);
  }
  void truncate(std::size_t length) const { ASSERT_EQ(::ftruncate(fd_, static_cast<off_t>(length)), 0); }

 private:
  int fd_;
};

template <class T>
void put(bytes& file, std::size_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof value);
}

template <class T>
T get(const bytes& file, std::size_t at) {
  T value;
  std::memcpy(&value, file.data() + at, sizeof value);
  return value;
}

// Changes of a field, for tables of false fields.
inline auto u64(std::size_t at, std::uint64_t value) {
  return [=](bytes& b) { put(b, at, value); };
}
inline auto u32(std::size_t at, std::uint32_t value) {
  return [=](bytes& b) { put(b, at, value); };
}
inline auto name(std::size_t at, const std::string& value) {
  return [=](bytes& b) {
    std::fill_n(b.begin() + static_cast<std::ptrdiff_t>(at), 32, std::uint8_t{0});
    std::ranges::copy(value, b.begin() + static_cast<std::ptrdiff_t>(at));
  };
}
// The file with a changed header and a correct checksum of it.
inline bytes with_header(bytes file, const std::function<void(bytes&)>& tamper) {
  tamper(file);
  put(file, 504, bloomery::format::checksum(std::span(file).first(504)));
  return file;
}

// The file with the checksums of its pages as they are now: hostile, not damaged.
inline bytes with_checksums(bytes file) {
  const std::size_t pages = (bloomery::bytes_for(get<std::uint64_t>(file, 128)) - 1) / page + 1;
  for (std::size_t number = 0; number < pages; ++number) {
    const auto content = std::span<const std::uint8_t>(file).subspan((1 + number) * page).first<page>();
    put(file, (1 + pages) * page + 8 * number, bloomery::format::page_checksum(content));
  }
  return file;
}

/// The file of a layered filter with correct checksums of its table and its header.
inline bytes layers_with_checksums(bytes file) {
  constexpr std::size_t header = 4096, entry = 48;
  const std::size_t table = std::min<std::size_t>(entry * get<std::uint64_t>(file, 136), file.size() - header);
  put(file, 144, bloomery::format::checksum(std::span(file).subspan(header, table)));
  put(file, 4088, bloomery::format::checksum(std::span(file).first(4088)));
  return file;
}

}  // namespace bloomery_tests
