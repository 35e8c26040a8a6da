// Each process of the library's tests works in an empty folder of its own: ctest runs several at once, and tests of
// two processes may use one file name.
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "support/files.hpp"

namespace bloomery_tests {
namespace {

class own_folder : public testing::Environment {
  void SetUp() override {
    before_ = std::filesystem::current_path();
    folder_.emplace();
    std::filesystem::current_path(folder_->path());
  }
  void TearDown() override {
    std::filesystem::current_path(before_);
    folder_.reset();
  }

  std::filesystem::path before_;
  std::optional<scratch_folder> folder_;
};

const testing::Environment* const registered = testing::AddGlobalTestEnvironment(new own_folder);

}  // namespace
}  // namespace bloomery_tests
