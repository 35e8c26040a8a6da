// What the disk has before a name or a mark says so: a power failure at any moment leaves a whole file.
#include <bloomery/any_filter.hpp>

#include "file/sample_file.hpp"
#include "support/syncs.hpp"
#include "support/test.hpp"

#include <sys/stat.h>

namespace bloomery {
namespace {

using namespace bloomery_tests;

bool is_folder(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
}

// What is synced by `action`, in order, and whether `path` has become the name of a new file by then.
template <class Action>
std::vector<std::string> syncs_of(const std::string& path, Action action) {
  const ino_t old = number_of(path);
  std::vector<std::string> syncs;
  const watched_syncs watched([&](int fd) {
    syncs.push_back(std::string(is_folder(fd) ? "folder" : "file") +
                    (number_of(path) == old ? " before the name" : " after the name"));
    return 0;
  });
  action();
  return syncs;
}

TEST(SyncedFile, IsOnTheDiskBeforeItsNameAndTheNameBeforeTheCallReturns) {
  const scratch_folder folder;
  const auto in_order = ElementsAre("file before the name", "folder after the name");

  EXPECT_THAT(syncs_of(folder / "f", [&] { save_sample(folder / "f"); }), in_order) << "a new file";
  EXPECT_THAT(syncs_of(folder / "f", [&] { save_sample(folder / "f"); }), in_order) << "a file that is replaced";
  EXPECT_THAT(syncs_of(folder / "g", [&] { const auto made = any_filter::create(folder / "g", sample_params); }),
              testing::IsSupersetOf({"file before the name", "folder after the name"}));
}

TEST(SyncedFile, IsMarkedDirtyBeforeItChangesAndCleanAfterItsPagesAreOnTheDisk) {
  const folder_with_sample folder;
  std::vector<bool> clean;  // as the file says at each sync
  const watched_syncs watched([&](int) {
    clean.push_back(inspect(folder / "f", file_check::header).info.clean);
    return 0;
  });

  any_filter filter = any_filter::open(folder / "f", {.mode = access::read_write});
  EXPECT_THAT(clean, ElementsAre(false));
  clean.clear();
  filter.insert("key");
  filter.close();

  EXPECT_THAT(clean, ElementsAre(false, true));
}

}  // namespace
}  // namespace bloomery
