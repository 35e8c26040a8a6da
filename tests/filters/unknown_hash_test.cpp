// A file whose hash only the program that wrote it has: its facts follow from its bits, and it refuses keys.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/sliced_filter.hpp>

#include "support/errors.hpp"
#include "support/processes.hpp"
#include "support/test.hpp"

#include <string>
#include <string_view>

namespace bloomery {
namespace {

using bloomery_tests::code_of;

struct own_hash {
  static constexpr std::string_view name = "test.own/1";
  key_hash operator()(std::string_view key) const noexcept {
    std::uint64_t h = 0;
    for (const char c : key) h = mix64(h + static_cast<unsigned char>(c));
    return {h, mix64(~h)};
  }
};

class UnknownHash : public testing::Test {
 protected:
  UnknownHash() : made_({.capacity = 1000, .fpr = 0.01}) {
    for (int i = 0; i < 700; ++i) made_.insert(std::to_string(i));
    made_.save(path_);
  }

  bloomery_tests::scratch_folder folder_;
  std::string path_ = folder_ / "own.bloom";
  filter<std::string_view, layouts::split_block, own_hash> made_;
};

TEST_F(UnknownHash, RefusesToOpenTheFileForKeys) {
  EXPECT_EQ(code_of([&] { any_filter::open(path_); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { any_filter::load(path_); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { any_filter::open(path_, {.mode = access::read_write, .facts_only = true}); }),
            errc::incompatible);
}

TEST_F(UnknownHash, ReportsFactsFromTheBits) {
  const any_filter facts = any_filter::open(path_, {.facts_only = true});
  EXPECT_EQ(facts.current_fpr(), made_.current_fpr());
  EXPECT_EQ(facts.insert_count(), made_.insert_count());
  EXPECT_EQ(facts.parameters().hash, "test.own/1");
  try {
    facts.may_contain("1");
    FAIL() << "expected an error";
  } catch (const error& e) {
    EXPECT_EQ(e.code(), errc::incompatible);
    EXPECT_EQ(e.text().found, "'test.own/1'");
  }
}

TEST_F(UnknownHash, HandlesLookUpNothing) {
  const std::unique_ptr<filter_handle> handle = open_filter(path_, {.facts_only = true});
  EXPECT_FALSE(handle->capabilities().can_look_up);
  EXPECT_EQ(handle->info(info_depth::everything).fill->current_fpr, made_.current_fpr());
  EXPECT_EQ(code_of([&] { handle->contains("1"); }), errc::incompatible);

  sliced_filter slices(path_, {.facts_only = true});
  EXPECT_FALSE(slices.capabilities().can_look_up);
  EXPECT_EQ(code_of([&] { sliced_filter refused(path_, {}); }), errc::incompatible);
}

}  // namespace
}  // namespace bloomery
