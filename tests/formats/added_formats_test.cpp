// Formats that a program adds: the library opens and writes them like its own, and trusts the reader with no size.
#include <bloomery/added_formats.hpp>
#include <bloomery/any_filter.hpp>
#include <bloomery/filter_handle.hpp>

#include "support/test.hpp"

namespace bloomery {
namespace {

using namespace bloomery_tests;

// A file of this format is "TEXT", then the bits of a filter of scheme bits_and_blooms with 3 probes.
constexpr std::string_view signature = "TEXT";
constexpr file_format text_format{"text", "a system of text", "bits_and_blooms", false};
std::uint64_t bytes_too_many = 0;

bool may_read(std::span<const std::uint8_t> beginning) {
  return std::string_view(reinterpret_cast<const char*>(beginning.data()), beginning.size()).starts_with(signature);
}

added_filter read(std::span<const std::uint8_t> file, std::string_view, const std::string& path) {
  if (file.size() <= signature.size()) throw error(errc::damaged, {"no bits", path, "", "", hint::none});
  const auto bits = file.subspan(signature.size());
  added_filter found{"text",
                     {.scheme = "bits_and_blooms", .geometry = {8 * bits.size(), 3}},
                     heap_storage(bits.size() + bytes_too_many)};
  std::copy(bits.begin(), bits.end(), found.bits.data());
  return found;
}

std::string write(std::string_view, const params&, std::span<const std::uint8_t> bits) {
  return std::string(signature) + std::string(bits.begin(), bits.end());
}

class AddedFormats : public testing::Test {
 protected:
  AddedFormats() { add_formats({std::span(&text_format, 1), 1000, may_read, read, write}); }
  ~AddedFormats() override {
    add_formats({});
    bytes_too_many = 0;
  }
};

TEST_F(AddedFormats, AreOpenedAndWrittenLikeThoseOfTheLibrary) {
  any_filter filter(params{.scheme = "bits_and_blooms", .geometry = {800, 3}});
  filter.insert("Madrid");
  export_filter(filter, "some.text", "text");

  EXPECT_EQ(recognize_format("some.text")->system, "a system of text");
  EXPECT_TRUE(import_filter("some.text") == filter);
  EXPECT_TRUE(import_filter("some.text", "text") == filter);
  const auto handle = open_filter("some.text");
  EXPECT_TRUE(handle->contains("Madrid"));
  EXPECT_FALSE(handle->capabilities().can_insert);
  EXPECT_THAT(file_format_names(), testing::EndsWith(", text"));
  const any_filter blocks(complete({.capacity = 100, .target_fpr = 0.01}));
  EXPECT_ERROR(export_filter(blocks, "no.text", "text"), errc::incompatible, "scheme bits_and_blooms");
  EXPECT_ERROR(export_filter(filter, "no.text", "text", {.metadata = "a note"}), errc::incompatible, "metadata");
}

TEST_F(AddedFormats, DoNotOpenFilesThatTheyRefuseOrThatAreTooLong) {
  write_file("empty.text", std::string(signature));
  write_file("long.text", std::string(signature) + std::string(1000, 'x'));
  write_file("other.text", "Madrid"s);

  EXPECT_ERROR(import_filter("empty.text"), errc::damaged, "no bits");
  EXPECT_ERROR(import_filter("long.text"), errc::too_large, "at most 1000 bytes, found 1004");
  EXPECT_ERROR(import_filter("other.text"), errc::not_a_filter, "other bytes");
  for (const char* const name : {"empty.text", "long.text", "other.text"}) {
    EXPECT_EQ(recognize_format(name), nullptr) << name;
    EXPECT_ERROR(open_filter(name), errc::not_a_filter, "");
  }
}

TEST_F(AddedFormats, HaveTheSizeOfTheirGeometry) {
  write_file("some.text", std::string(signature) + "bits"s);
  import_filter("some.text");
  bytes_too_many = 1;

  EXPECT_ERROR(import_filter("some.text"), errc::incompatible, "another number of bytes");
}

TEST_F(AddedFormats, AreReplacedByOthers) {
  write_file("some.text", std::string(signature) + "bits"s);
  add_formats({});

  EXPECT_EQ(find_file_format("text"), nullptr);
  EXPECT_ERROR(import_filter("some.text", "text"), errc::invalid_argument, "unknown format");
}

}  // namespace
}  // namespace bloomery
