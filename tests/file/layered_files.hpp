// Damaged and hostile files of layered filters: every flipped bit, every other length, and false fields under correct
// checksums.
//
// Offsets are those of docs/format.md.
#pragma once

#include <bloomery/filter_handle.hpp>
#include <bloomery/layered_filter.hpp>

#include "file/sample_file.hpp"
#include "support/test.hpp"

namespace bloomery_tests {

inline constexpr std::size_t first_entry = 4096;  // of the table of layers
inline constexpr std::size_t entry = 48;
inline constexpr std::uint64_t huge = std::numeric_limits<std::uint64_t>::max();

inline void expect_flipped_bits_refused(const std::string& path) {
  const patched_file file(path);
  const std::size_t length = read_file(path).size();
  ASSERT_LT(length, 12'000u);
  for (std::size_t offset = 0; offset < length; ++offset) {
    const unsigned bit = 1u << offset % 8;
    file.flip(offset, bit);

    const bloomery::errc expected = offset < 8    ? bloomery::errc::not_a_filter
                                    : offset < 12 ? bloomery::errc::wrong_version
                                                  : bloomery::errc::damaged;
    ASSERT_EQ(code_of([&] { bloomery::open_filter(path); }), expected) << "byte " << offset;
    ASSERT_TRUE(offset < 8 || code_of([&] { bloomery::layered_filter::open(path); }) == expected) << "byte " << offset;
    ASSERT_FALSE(bloomery::inspect(path, bloomery::file_check::payload).usable) << "byte " << offset;

    file.flip(offset, bit);
  }
  EXPECT_TRUE(bloomery::inspect(path, bloomery::file_check::payload).usable);
}

inline void expect_other_lengths_refused(const std::string& path) {
  const bytes whole = read_file(path);
  for (std::size_t length = 0; length < whole.size(); length += length < 64 ? 1 : 61) {
    write_file(path, bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)));

    const bool is_unknown =
        length == 0 || (length > 4 && length < 8);  // up to 4 bytes begin as any file of the library
    ASSERT_EQ(code_of([&] { bloomery::open_filter(path); }),
              is_unknown ? bloomery::errc::not_a_filter : bloomery::errc::damaged)
        << length;
  }
  bytes longer = whole;
  longer.push_back(0);
  write_file(path, longer);
  EXPECT_EQ(code_of([&] { bloomery::open_filter(path); }), bloomery::errc::damaged);
}

/// A change of the header or the table that a file of the library cannot have.
struct false_field {
  const char* what;
  std::function<void(bytes&)> apply;
  bloomery::errc expected = bloomery::errc::damaged;
};

/// Two fields of 64 bits.
inline auto both(std::size_t at, std::uint64_t value, std::size_t other_at, std::uint64_t other_value) {
  return [=](bytes& b) {
    put(b, at, value);
    put(b, other_at, other_value);
  };
}

/// Each of these changes is refused, and the file without a change is not.
inline void expect_false_fields_refused(const std::string& path, const std::vector<false_field>& rows) {
  const bytes whole = read_file(path);
  for (const false_field& row : rows) {
    SCOPED_TRACE(row.what);
    bytes file = whole;
    row.apply(file);
    write_file(path, layers_with_checksums(file));

    EXPECT_EQ(code_of([&] { bloomery::open_filter(path); }), row.expected);
    EXPECT_FALSE(bloomery::inspect(path).usable);
  }
  write_file(path, layers_with_checksums(whole));
  EXPECT_NO_THROW(bloomery::open_filter(path));
}

}  // namespace bloomery_tests
