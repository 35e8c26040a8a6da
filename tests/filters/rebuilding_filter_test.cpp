// A filter that grows by its log: beside a set, whatever is done to it, and killed at whatever moment.
#include <bloomery/file_edit.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/rebuilding_filter.hpp>

#include "support/errors.hpp"
#include "support/files.hpp"
#include "support/operations.hpp"
#include "support/processes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <new>
#include <optional>
#include <ostream>
#include <random>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

// Asked before the disk is: 0 or the error that it is to have.
std::function<int(int fd)> before_sync;

int synced(long call, int fd) {
  if (const int failure = before_sync ? before_sync(fd) : 0; failure != 0) {
    errno = failure;
    return -1;
  }
  return static_cast<int>(::syscall(call, fd));
}

}  // namespace

// In place of the system's, for all of this program.
extern "C" int fdatasync(int fd) { return synced(SYS_fdatasync, fd); }
extern "C" int fsync(int fd) { return synced(SYS_fsync, fd); }

namespace bloomery {
namespace {

using bloomery_tests::bytes;
using bloomery_tests::code_of;
using bloomery_tests::error_of;
using bloomery_tests::holds_for_all;
using bloomery_tests::read_file;
using bloomery_tests::scratch_folder;
using bloomery_tests::start_child;
using bloomery_tests::status_of_child;
using bloomery_tests::wait_for;
using bloomery_tests::write_file;
using testing::HasSubstr;

bool is_long() {
  const char* set = std::getenv("BLOOMERY_LONG");
  return set != nullptr && *set != '\0' && *set != '0';
}

const params of_integers = {.keys = key_kind::u64le, .target_fpr = 0.01};

std::vector<std::uint64_t> numbers(std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint64_t> keys(count);
  for (std::uint64_t i = 0; i < count; ++i) keys[i] = first + i;
  return keys;
}

std::uint64_t count_found(const any_filter& filter, std::span<const std::uint64_t> keys) {
  std::vector<std::uint64_t> maybe((keys.size() + 63) / 64);
  filter.may_contain(keys, maybe);
  std::uint64_t found = 0;
  for (const std::uint64_t word : maybe) found += static_cast<std::uint64_t>(__builtin_popcountll(word));
  return found;
}

void add(rebuilding_filter& filter, std::uint64_t first, std::uint64_t count, std::uint64_t together = 10'000) {
  for (std::uint64_t at = 0; at < count; at += together) {
    filter.insert(std::span<const std::uint64_t>(numbers(first + at, std::min(together, count - at))));
  }
}

constexpr std::uint64_t absent = std::uint64_t{1} << 60;  // and above: numbers that are never inserted

// Within six standard deviations of the promise, which is not to be passed.
void expect_rate_kept(const any_filter& filter, double rate, std::uint64_t queries = 200'000) {
  const auto hits = static_cast<double>(count_found(filter, numbers(absent, queries)));
  const double expected = rate * static_cast<double>(queries);
  EXPECT_LE(hits, expected + 6 * std::sqrt(expected * (1 - rate)));
}

std::uint64_t file_bytes(const std::string& path) { return std::filesystem::file_size(path); }

// ---- a set is the truth

struct operation {
  enum kind { insert_some, insert_one, insert_again, reopen, drop, rebuild } what;
  std::uint64_t number;
};

std::ostream& operator<<(std::ostream& out, const operation& o) {
  constexpr const char* names[] = {"insert some", "insert one", "insert again", "reopen", "drop", "rebuild"};
  return out << names[o.what] << " " << o.number;
}

operation draw(std::mt19937_64& random) {
  const std::uint64_t number = random();
  const std::uint64_t chance = random() % 100;
  return {chance < 40   ? operation::insert_some
          : chance < 60 ? operation::insert_one
          : chance < 75 ? operation::insert_again
          : chance < 85 ? operation::reopen
          : chance < 92 ? operation::drop
                        : operation::rebuild,
          number};
}

std::string differs_from_a_set(const std::vector<operation>& operations) {
  const scratch_folder folder;
  const std::string path = folder / "f";
  std::set<std::uint64_t> truth;
  rebuilding_filter filter = rebuilding_filter::create(path, of_integers);
  const auto reopen = [&] {
    filter = rebuilding_filter::open(path, {.mode = access::read_write, .check = file_check::payload});
  };
  constexpr double rates[] = {0.01, 0.1, 0.001, 0.05};
  constexpr const char* layouts[] = {"split_block", "split_block512", "blocked", "blocked_page"};
  for (const operation& o : operations) {
    switch (o.what) {
      case operation::insert_some: {
        const auto keys = numbers(o.number % 4000, o.number / 4000 % 1500);
        filter.insert(std::span<const std::uint64_t>(keys));
        truth.insert(keys.begin(), keys.end());
        break;
      }
      case operation::insert_one:
        if (filter.insert(o.number % 100'000) && !truth.insert(o.number % 100'000).second) return "new twice";
        truth.insert(o.number % 100'000);
        break;
      case operation::insert_again:
        if (!truth.empty() && filter.insert(*truth.begin())) return "new though it was there";
        break;
      case operation::reopen:
        filter.close();
        reopen();
        break;
      case operation::drop:
        filter.abandon();
        reopen();
        break;
      case operation::rebuild:
        filter.rebuild({.rate = rates[o.number % 4], .layout = layouts[o.number / 4 % 4]});
        break;
    }
    for (const std::uint64_t key : truth) {
      if (!filter.may_contain(key)) return "key " + std::to_string(key) + " is missing";
    }
    // After a drop the count is estimated from the bits.
    const double more = static_cast<double>(filter.insert_count()) - static_cast<double>(truth.size());
    if (more > (filter.view().count_is_estimate() ? 20 + 0.02 * static_cast<double>(truth.size()) : 0)) {
      return "more keys than there are";
    }
    if (more < -20 - 0.1 * static_cast<double>(truth.size())) return "too few keys";
    if (filter.insert_count() > filter.capacity()) return "fuller than full";
  }
  filter.close();
  const inspection left = inspect(path, file_check::payload);
  return left.usable && left.problems.empty() ? "" : "a file that is not right";
}

TEST(LoggedFilter, DoesAsASetDoes) { EXPECT_TRUE(holds_for_all(is_long() ? 200 : 8, 25, draw, differs_from_a_set)); }

// ---- growing

TEST(LoggedFilter, KeepsItsPromiseAndItsSizeAtEachStepOfGrowth) {
  const scratch_folder folder;
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
  const std::uint64_t last = is_long() ? 10'000'000 : 400'000;
  std::uint64_t rebuilds = 0;
  double most_bits = 0;

  for (std::uint64_t keys = 0; keys < last;) {
    const std::uint64_t more = std::max<std::uint64_t>(keys / 50, 500);
    add(filter, keys, more);
    keys += more;
    filter.settle();
    if (keys > 4096) {
      const double bits = 8 * static_cast<double>(filter.view().byte_size()) / static_cast<double>(keys);
      most_bits = std::max(most_bits, bits);
    }
    if (filter.rebuilds() == rebuilds) continue;
    rebuilds = filter.rebuilds();
    ASSERT_LE(keys, filter.capacity());
    expect_rate_kept(filter.view(), 0.01, 50'000);
  }

  EXPECT_GT(rebuilds, 20u);
  EXPECT_LE(most_bits, 13);
  EXPECT_EQ(count_found(filter.view(), numbers(0, last)), last);
  const double all = static_cast<double>(filter.insert_count());
  EXPECT_LE(8 * static_cast<double>(file_bytes(folder / "f")) / all, 13);
  EXPECT_LE(static_cast<double>(filter.log().bytes()) / all, 8.5);
}

// Full to the last key it has room for, the rate is what was promised.
TEST(LoggedFilter, IsAtItsPromiseWhenItIsFull) {
  const scratch_folder folder;
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
  add(filter, 0, 120'000);
  filter.settle();

  while (filter.insert_count() < filter.capacity() * 96 / 100) add(filter, absent / 2 + filter.log().keys(), 500);

  EXPECT_GT(filter.expected_fpr(), 0.008);
  EXPECT_LE(filter.expected_fpr(), 0.01);
  expect_rate_kept(filter.view(), 0.01);
}

// The log has keys that a filter of many false positives took for present.
TEST(LoggedFilter, RebuiltAtALowerRateItHasTheKeysThatOnceSeemedToBeThere) {
  const scratch_folder folder;
  params p = of_integers;
  p.target_fpr = 0.1;
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", p);
  add(filter, 0, 1'000'000, 50'000);
  EXPECT_LT(filter.insert_count(), 990'000u);  // so some were taken for present

  filter.rebuild({.rate = 0.01});

  EXPECT_EQ(count_found(filter.view(), numbers(0, 1'000'000)), 1'000'000u);
  EXPECT_GT(filter.insert_count(), 990'000u);
  expect_rate_kept(filter.view(), 0.01);
}

TEST(LoggedFilter, RebuildsAtOtherRatesLayoutsAndCapacities) {
  const scratch_folder folder;
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
  add(filter, 0, 20'000);

  for (const char* layout : {"split_block", "split_block512", "blocked", "blocked_page"}) {
    filter.rebuild({.rate = 0.001, .capacity = 30'000, .layout = layout});
    EXPECT_EQ(filter.parameters().layout, layout);
    EXPECT_EQ(filter.parameters().target_fpr, 0.001);
    EXPECT_EQ(filter.capacity(), 30'000u);
    EXPECT_EQ(count_found(filter.view(), numbers(0, 20'000)), 20'000u);
    expect_rate_kept(filter.view(), 0.001);
  }

  EXPECT_EQ(code_of([&] { filter.rebuild({.layout = "classic"}); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { filter.rebuild({.capacity = 10'000}); }), errc::invalid_argument);
  EXPECT_EQ(code_of([&] { filter.rebuild({.rate = 1.0}); }), errc::invalid_argument);
  EXPECT_EQ(filter.parameters().layout, "blocked_page");
  EXPECT_EQ(count_found(filter.view(), numbers(0, 20'000)), 20'000u);
}

TEST(LoggedFilter, RefusesWhatNeedsMoreThanALogHas) {
  const scratch_folder folder;

  EXPECT_EQ(code_of([&] { rebuilding_filter::create(folder / "f", {.layout = "classic"}); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { rebuilding_filter::create(folder / "f", {.scheme = "guava"}); }), errc::incompatible);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(LoggedFilter, WritesItsLogAnewWhenMostOfItIsRepetition) {
  const scratch_folder folder;
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);

  for (int i = 0; i < 60; ++i) add(filter, 0, 10'000);
  filter.settle();

  EXPECT_GT(filter.log().generation(), 1u);
  EXPECT_LT(filter.log().bytes(), (std::uint64_t{1} << 20) + 100'000);
  EXPECT_EQ(count_found(filter.view(), numbers(0, 10'000)), 10'000u);
  filter.close();
  EXPECT_EQ(
      count_found(
          rebuilding_filter::open(folder / "f", {.mode = access::read_write, .check = file_check::payload}).view(),
          numbers(0, 10'000)),
      10'000u);
}

TEST(LoggedFilter, TakesRecordedKeysAtTheNextRebuildOrAtClosing) {
  const scratch_folder folder;
  const any_filter hasher(
      complete({.layout = "split_block512", .keys = key_kind::u64le, .capacity = 1, .target_fpr = 0.5}));
  std::vector<key_hash> hashes(30'000);
  hasher.hash(std::span<const std::uint64_t>(numbers(0, 30'000)), hashes);
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);

  filter.record(hashes);
  EXPECT_EQ(filter.insert_count(), 0u);
  filter.close();

  filter = rebuilding_filter::open(folder / "f", {.mode = access::read_write});
  EXPECT_EQ(count_found(filter.view(), numbers(0, 30'000)), 30'000u);
  EXPECT_EQ(filter.capacity(), 37'200u);
}

TEST(LoggedFilter, KeepsKeysOfBytesWithASecret) {
  const scratch_folder folder;
  const secret_key key = random_secret();
  std::vector<std::string> texts;
  for (int i = 0; i < 3000; ++i) texts.push_back("user " + std::to_string(i));
  const std::vector<std::string_view> keys(texts.begin(), texts.end());
  {
    rebuilding_filter filter = rebuilding_filter::create(folder / "f", {.secret = key});
    filter.insert(std::span<const std::string_view>(keys));
    filter.close();
  }

  EXPECT_EQ(code_of([&] { rebuilding_filter::open(folder / "f", {.mode = access::read_write}); }), errc::incompatible);
  EXPECT_EQ(
      code_of([&] { rebuilding_filter::open(folder / "f", {.mode = access::read_write, .secret = random_secret()}); }),
      errc::incompatible);
  rebuilding_filter filter =
      rebuilding_filter::open(folder / "f", {.mode = access::read_write, .check = file_check::payload, .secret = key});
  filter.rebuild({.rate = 0.001});

  for (const std::string_view text : keys) EXPECT_TRUE(filter.may_contain(text));
  EXPECT_EQ(filter.parameters().hash, "siphash");
}

// ---- files

TEST(LoggedFilter, OpensCleanAndSaysNothing) {
  const scratch_folder folder;
  {
    rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers, {.metadata = "a remark"});
    add(filter, 0, 5000);
    filter.close();
  }
  std::string notes;

  rebuilding_filter filter = rebuilding_filter::open(
      folder / "f", {.mode = access::read_write, .check = file_check::payload, .notes = [&](const std::string& text) {
                       notes += text;
                     }});

  EXPECT_EQ(notes, "");
  EXPECT_EQ(filter.view().opened_from()->metadata, "a remark");
  add(filter, 5000, 5000);
  filter.close();
  EXPECT_EQ(any_filter::open(folder / "f").opened_from()->metadata, "a remark");
  EXPECT_FALSE(std::filesystem::exists(folder / "f.rebuild"));
}

TEST(LoggedFilter, AnyFilterReadsItAndDoesNotWriteIt) {
  const scratch_folder folder;
  {
    rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
    add(filter, 0, 5000);
  }

  EXPECT_EQ(count_found(any_filter::open(folder / "f"), numbers(0, 5000)), 5000u);
  const auto refused = error_of([&] { any_filter::open(folder / "f", {.mode = access::read_write}); });
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), errc::incompatible);
  EXPECT_THAT(refused->what(), HasSubstr("open the filter together with its log"));
  EXPECT_TRUE(inspect(folder / "f").info.clean);
}

// Keys that a file_edit committed would not be in the log, and would be gone after the next rebuild.
TEST(LoggedFilter, IsNotEditedPastItsLog) {
  const scratch_folder folder;
  {
    rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
    add(filter, 0, 100);
  }

  const auto refused = error_of([&] { file_edit(folder / "f"); });

  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), errc::incompatible);
  EXPECT_THAT(refused->what(), HasSubstr("open the filter together with its log"));
  rebuilding_filter again = rebuilding_filter::open(folder / "f");  // nobody holds its lock
}

TEST(LoggedFilter, ACopyHasNoLog) {
  const scratch_folder folder;
  {
    rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
    add(filter, 0, 5000);
  }

  any_filter::load(folder / "f").save(folder / "copy");

  EXPECT_EQ(inspect(folder / "copy").info.parameters.log_id, 0u);
  EXPECT_EQ(code_of([&] { any_filter::open(folder / "copy", {.mode = access::read_write}); }), std::nullopt);
  EXPECT_EQ(code_of([&] { rebuilding_filter::open(folder / "copy", {.mode = access::read_write}); }),
            errc::incompatible);
}

TEST(LoggedFilter, WithoutItsLogItAnswersAndTakesNoKeys) {
  const scratch_folder folder;
  for (const char* name : {"f", "other"}) {
    rebuilding_filter filter = rebuilding_filter::create(folder / name, of_integers);
    add(filter, 0, 3000);
  }
  const auto is_refused_with = [&](errc code) {
    EXPECT_EQ(code_of([&] { rebuilding_filter::open(folder / "f", {.mode = access::read_write}); }), code);
    EXPECT_EQ(count_found(rebuilding_filter::open(folder / "f").view(), numbers(0, 3000)), 3000u);
    EXPECT_TRUE(inspect(folder / "f").usable);
  };

  std::filesystem::rename(folder / "f.log", folder / "hidden");
  is_refused_with(errc::not_found);
  std::filesystem::copy(folder / "other.log", folder / "f.log");
  is_refused_with(errc::incompatible);
  std::filesystem::rename(folder / "hidden", folder / "f.log");
  EXPECT_EQ(code_of([&] { rebuilding_filter::open(folder / "f", {.mode = access::read_write}); }), std::nullopt);
}

TEST(LoggedFilter, InsertsWhatALogOfAnotherGenerationHas) {
  const scratch_folder folder;
  {
    rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
    add(filter, 0, 3000);
    filter.close();
  }
  // A log that was written anew, and has more, beside the filter of before.
  {
    key_log log = key_log::open(folder / "f.log", access::read_write);
    log.remove_duplicates();
    std::vector<std::uint64_t> hash64s;
    for (std::uint64_t key = 3000; key < 3500; ++key) hash64s.push_back(mix{}(key).hash64);
    log.append(hash64s);
  }

  const rebuilding_filter filter = rebuilding_filter::open(folder / "f", {.mode = access::read_write});

  EXPECT_EQ(count_found(filter.view(), numbers(0, 3500)), 3500u);
}

TEST(LoggedFilter, ATornLogIsCutAndSaid) {
  const scratch_folder folder;
  {
    rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
    add(filter, 0, 3000);
    filter.close();
  }
  bytes log = read_file(folder / "f.log");
  const std::size_t whole = log.size();
  log.resize(whole + 40, 7);
  write_file(folder / "f.log", log);
  std::string notes;

  rebuilding_filter filter = rebuilding_filter::open(
      folder / "f", {.mode = access::read_write, .check = file_check::payload, .notes = [&](const std::string& text) {
                       notes += text;
                     }});

  EXPECT_THAT(notes, HasSubstr("not written to the end, 40 bytes"));
  EXPECT_EQ(file_bytes(folder / "f.log"), whole);
}

TEST(LoggedFilter, ADamagedLogIsRefusedAndSalvaged) {
  const scratch_folder folder;
  {
    rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
    add(filter, 0, 50'000, 1000);
    filter.close();
  }
  bytes log = read_file(folder / "f.log");
  log[log.size() / 2] ^= 1;
  write_file(folder / "f.log", log);

  const auto refused = error_of(
      [&] { rebuilding_filter::open(folder / "f", {.mode = access::read_write, .check = file_check::payload}); });
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), errc::damaged);
  EXPECT_THAT(refused->what(), HasSubstr("lost in 1 place"));
  EXPECT_EQ(count_found(any_filter::open(folder / "f"), numbers(0, 50'000)), 50'000u);
  EXPECT_EQ(code_of([&] { rebuilding_filter::recover(folder / "f"); }), errc::damaged);
  EXPECT_EQ(read_file(folder / "f.log"), log);

  rebuilding_filter filter = rebuilding_filter::recover(folder / "f", {.salvage = true});

  EXPECT_GT(filter.lost_keys(), 0u);
  EXPECT_LE(filter.lost_keys(), 1000u);
  const std::uint64_t found = count_found(filter.view(), numbers(0, 50'000));
  EXPECT_GE(found, 50'000 - filter.lost_keys());
  EXPECT_LE(found, 50'000 - filter.lost_keys() + 60);  // but for false positives among the lost
  filter.close();
  // What there was still finds them all, and is never written over.
  EXPECT_EQ(read_file(folder / "f.damaged.log"), log);
  EXPECT_EQ(count_found(any_filter::open(folder / "f.damaged"), numbers(0, 50'000)), 50'000u);
  const auto salvaged = read_file(folder / "f.log");
  write_file(folder / "f.log", log);
  EXPECT_EQ(code_of([&] { rebuilding_filter::recover(folder / "f", {.salvage = true}); }), errc::already_exists);
  EXPECT_EQ(read_file(folder / "f.log"), log);
  write_file(folder / "f.log", salvaged);
  EXPECT_EQ(code_of([&] {
              rebuilding_filter::open(folder / "f", {.mode = access::read_write, .check = file_check::payload});
            }),
            std::nullopt);
}

TEST(LoggedFilter, ALogThatLostItsEndIsRefused) {
  const scratch_folder folder;
  {
    rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
    add(filter, 0, 5000, 500);
    filter.close();
  }
  bytes log = read_file(folder / "f.log");
  log.resize(log.size() - 100);
  write_file(folder / "f.log", log);

  EXPECT_EQ(code_of([&] { rebuilding_filter::open(folder / "f", {.mode = access::read_write}); }), errc::damaged);
  EXPECT_EQ(code_of([&] { rebuilding_filter::recover(folder / "f"); }), errc::damaged);
  EXPECT_EQ(count_found(any_filter::open(folder / "f"), numbers(0, 5000)), 5000u);
}

TEST(LoggedFilter, AnOlderLogIsRefusedAndSalvaged) {
  const scratch_folder folder;
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
  add(filter, 0, 3000);
  filter.close();
  std::filesystem::copy(folder / "f.log", folder / "older");
  {
    key_log repetitive = key_log::open(folder / "older", access::read_write);
    std::vector<std::uint64_t> hash64s;
    repetitive.read(
        0, [&](std::span<const std::uint64_t> some) { hash64s.insert(hash64s.end(), some.begin(), some.end()); });
    std::filesystem::copy(folder / "older", folder / "as it was");
    repetitive.append(hash64s);  // 6000 keys now, and 3000 different
  }
  key_log::open(folder / "f.log", access::read_write).remove_duplicates();
  filter = rebuilding_filter::open(folder / "f", {.mode = access::read_write});
  add(filter, 3000, 2000);
  filter.close();
  const bytes whole = read_file(folder / "f");

  for (const char* older : {"as it was", "older"}) {
    std::filesystem::copy(folder / older, folder / "f.log", std::filesystem::copy_options::overwrite_existing);
    const auto refused = error_of([&] { rebuilding_filter::open(folder / "f", {.mode = access::read_write}); });
    ASSERT_TRUE(refused) << older;
    EXPECT_EQ(refused->code(), errc::damaged);
    EXPECT_THAT(refused->what(), HasSubstr("it has 3000 keys, and the filter"));
    EXPECT_EQ(code_of([&] { rebuilding_filter::recover(folder / "f"); }), errc::damaged) << older;
    EXPECT_EQ(read_file(folder / "f"), whole) << older;
  }
  std::string notes;
  filter =
      rebuilding_filter::recover(folder / "f", {.salvage = true}, {.notes = [&](const std::string& t) { notes += t; }});

  EXPECT_THAT(notes, HasSubstr("it goes on without what is lost"));
  EXPECT_GE(filter.lost_keys(), 1900u);
  EXPECT_LE(filter.lost_keys(), 2000u);
  EXPECT_EQ(count_found(filter.view(), numbers(0, 3000)), 3000u);
}

TEST(LoggedFilter, SalvageCountsTheKeysOfALostEnd) {
  const scratch_folder folder;
  {
    params roomy = of_integers;
    roomy.capacity = 10'000;  // no batch is divided
    rebuilding_filter filter = rebuilding_filter::create(folder / "f", roomy);
    add(filter, 0, 5000, 500);
  }
  std::filesystem::resize_file(folder / "f.log", file_bytes(folder / "f.log") - 100);

  EXPECT_EQ(rebuilding_filter::recover(folder / "f", {.salvage = true}).lost_keys(), 500u);
}

TEST(LoggedFilter, AnOpeningThatIsRefusedDoesNotMarkItDirty) {
  const scratch_folder folder;
  {
    rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
    add(filter, 0, 5000, 500);
    params other = of_integers;
    other.seed = 5;
    rebuilding_filter::create(folder / "other", other);
  }
  const bytes filter = read_file(folder / "f");
  const bytes log = read_file(folder / "f.log");
  const auto is_refused = [&](const bytes& instead) {
    write_file(folder / "f.log", instead);
    EXPECT_NE(code_of([&] {
                rebuilding_filter::open(folder / "f", {.mode = access::read_write, .check = file_check::payload});
              }),
              std::nullopt);
    EXPECT_TRUE(read_file(folder / "f") == filter);
    EXPECT_TRUE(inspect(folder / "f").info.clean);
  };

  is_refused(read_file(folder / "other.log"));
  is_refused(bytes(log.begin(), log.end() - 100));
  bytes spoiled = log;
  spoiled[log.size() / 2] ^= 1;
  is_refused(spoiled);
}

TEST(LoggedFilter, IsRecoveredAsItIsWhenTheLockIsFree) {
  const scratch_folder folder;
  rebuilding_filter writer = rebuilding_filter::create(folder / "f", of_integers);
  add(writer, 0, 3000);
  bool waited = false;

  const rebuilding_filter filter =
      rebuilding_filter::recover(folder / "f", {}, {.waiting = [&](const std::string&) {
                                   if (std::exchange(waited, true)) return;
                                   writer.rebuild({.rate = 0.001, .layout = "blocked_page"});
                                   writer.close();
                                 }});

  EXPECT_TRUE(waited);
  EXPECT_EQ(filter.parameters().target_fpr, 0.001);
  EXPECT_EQ(filter.parameters().layout, "blocked_page");
}

TEST(LoggedFilter, IsRecoveredFromItsLogAlone) {
  const scratch_folder folder;
  params p = of_integers;
  p.target_fpr = 0.001;
  {
    rebuilding_filter filter = rebuilding_filter::create(folder / "f", p);
    add(filter, 0, 5000);
    filter.close();
  }
  const bytes whole = read_file(folder / "f");
  const auto recovers = [&] {
    rebuilding_filter filter = rebuilding_filter::recover(folder / "f");
    EXPECT_EQ(count_found(filter.view(), numbers(0, 5000)), 5000u);
    EXPECT_EQ(filter.parameters().target_fpr, 0.001);
    filter.close();
    EXPECT_EQ(code_of([&] {
                rebuilding_filter::open(folder / "f", {.mode = access::read_write, .check = file_check::payload});
              }),
              std::nullopt);
  };

  std::filesystem::remove(folder / "f");
  recovers();
  bytes spoiled = whole;
  spoiled[100] ^= 1;
  write_file(folder / "f", spoiled);
  recovers();
}

TEST(LoggedFilter, ReplacesAnOldOneWithItsLogOrNothing) {
  const scratch_folder folder;
  rebuilding_filter old = rebuilding_filter::create(folder / "f", of_integers);
  add(old, 0, 3000);

  EXPECT_EQ(code_of([&] { rebuilding_filter::create(folder / "f", of_integers); }), errc::locked);
  old.close();
  EXPECT_EQ(code_of([&] { rebuilding_filter::create(folder / "f", of_integers, {.replace = false}); }),
            errc::already_exists);
  EXPECT_EQ(count_found(any_filter::open(folder / "f"), numbers(0, 3000)), 3000u);
  std::filesystem::copy(folder / "f", folder / "old");
  {
    rebuilding_filter fresh = rebuilding_filter::create(folder / "f", of_integers);
    add(fresh, 10'000, 2000);
  }

  rebuilding_filter fresh =
      rebuilding_filter::open(folder / "f", {.mode = access::read_write, .check = file_check::payload});
  EXPECT_EQ(count_found(fresh.view(), numbers(10'000, 2000)), 2000u);
  EXPECT_LT(count_found(fresh.view(), numbers(0, 3000)), 200u);
}

TEST(LoggedFilter, ReplacesNoOtherFileThanALog) {
  const scratch_folder folder;
  { rebuilding_filter::create(folder / "made", of_integers); }
  const bytes letter = {'D', 'e', 'a', 'r', ' ', 'S', 'i', 'r', ',', ' ', 'y', 'o', 'u', 'r', 's'};
  write_file(folder / "f.log", letter);
  const auto is_refused = [&] {
    const auto refused = error_of([&] { rebuilding_filter::create(folder / "f", of_integers); });
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->code(), errc::not_a_filter);
    EXPECT_THAT(refused->what(), HasSubstr("f.log"));
    EXPECT_EQ(code_of([&] { rebuilding_filter::move(folder / "made", folder / "f"); }), errc::not_a_filter);
  };

  is_refused();

  EXPECT_EQ(read_file(folder / "f.log"), letter);
  EXPECT_FALSE(std::filesystem::exists(folder / "f"));
  EXPECT_FALSE(std::filesystem::exists(folder / "f.log.rebuild"));
  EXPECT_TRUE(std::filesystem::exists(folder / "made"));
  EXPECT_TRUE(std::filesystem::exists(folder / "made.log"));
  write_file(folder / "f.log", bytes());
  is_refused();

  // A damaged log is one.
  bytes damaged = read_file(folder / "made.log");
  damaged[30] ^= 1;
  write_file(folder / "f.log", damaged);
  EXPECT_EQ(code_of([&] { rebuilding_filter::create(folder / "f", of_integers); }), std::nullopt);
  write_file(folder / "f.log", damaged);
  EXPECT_EQ(code_of([&] { rebuilding_filter::move(folder / "made", folder / "f"); }), std::nullopt);
}

TEST(LoggedFilter, ACreationThatIsRefusedLeavesTheRebuildOfTheWriter) {
  const scratch_folder folder;
  rebuilding_filter writer = rebuilding_filter::create(folder / "f", of_integers);
  write_file(folder / "f.rebuild", bytes{1, 2, 3});

  EXPECT_EQ(code_of([&] { rebuilding_filter::create(folder / "f", of_integers); }), errc::locked);
  EXPECT_TRUE(std::filesystem::exists(folder / "f.rebuild"));
  writer.abandon();
  EXPECT_EQ(code_of([&] { rebuilding_filter::create(folder / "f", of_integers, {.replace = false}); }),
            errc::already_exists);
  EXPECT_TRUE(std::filesystem::exists(folder / "f.rebuild"));
}

TEST(LoggedFilter, OpensWithinItsPromiseAfterAKillBeforeItGrew) {
  const scratch_folder folder;
  const any_filter hasher(
      complete({.layout = "split_block512", .keys = key_kind::u64le, .capacity = 1, .target_fpr = 0.5}));
  std::vector<key_hash> hashes(300'000);
  hasher.hash(std::span<const std::uint64_t>(numbers(0, hashes.size())), hashes);
  rebuilding_filter killed = rebuilding_filter::create(folder / "f", of_integers);
  killed.record(hashes);
  killed.abandon();

  rebuilding_filter filter = rebuilding_filter::open(folder / "f", {.mode = access::read_write});

  EXPECT_EQ(filter.rebuilds(), 1u);
  EXPECT_GE(filter.capacity(), hashes.size());
  filter.close();
  const any_filter closed = any_filter::open(folder / "f");
  EXPECT_EQ(count_found(closed, numbers(0, hashes.size())), hashes.size());
  EXPECT_LE(closed.expected_fpr(), 0.01);
  expect_rate_kept(closed, 0.01);
}

// ---- the disk

ino_t number_of(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

class watched_syncs {
 public:
  explicit watched_syncs(std::function<int(int fd)> watch) { before_sync = std::move(watch); }
  watched_syncs(const watched_syncs&) = delete;
  watched_syncs& operator=(const watched_syncs&) = delete;
  ~watched_syncs() { before_sync = nullptr; }
};

TEST(LoggedFilter, TheDiskHasTheLogBeforeTheFilterThatCountsIt) {
  const scratch_folder folder;
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
  add(filter, 0, 900);
  const ino_t old = number_of(folder / "f");
  const ino_t log = number_of(folder / "f.log");
  bool log_first = false;
  {
    const watched_syncs watched([&](int fd) {
      struct stat status {};
      if (::fstat(fd, &status) == 0 && status.st_ino == log && number_of(folder / "f") == old) log_first = true;
      return 0;
    });
    filter.rebuild({.rate = 0.001});
  }

  EXPECT_NE(number_of(folder / "f"), old);
  EXPECT_EQ(number_of(folder / "f.log"), log);
  EXPECT_TRUE(log_first);
}

TEST(LoggedFilter, KeysGoToTheNewLogThoughItsFolderCannotBeSynced) {
  const scratch_folder folder;
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
  add(filter, 0, 3000);
  const ino_t log = number_of(folder / "f.log");
  {
    const watched_syncs watched([&](int fd) {
      struct stat status {};
      const bool is_folder = ::fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);
      return is_folder && number_of(folder / "f.log") != log ? EIO : 0;
    });
    EXPECT_EQ(code_of([&] { filter.rebuild({.salvage = true}); }), errc::io);  // which writes the log anew
  }
  EXPECT_NE(number_of(folder / "f.log"), log);

  add(filter, 3000, 3000);
  filter.abandon();

  filter = rebuilding_filter::open(folder / "f", {.mode = access::read_write, .check = file_check::payload});
  EXPECT_EQ(count_found(filter.view(), numbers(0, 6000)), 6000u);
  EXPECT_EQ(filter.log().keys(), 6000u);
}

TEST(LoggedFilter, WhatAFailedRebuildMadeIsRemoved) {
  const scratch_folder folder;
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
  add(filter, 0, 3000);
  {
    // When both are made: the new log, as it is published.
    bool seen = false;
    const watched_syncs watched([&](int fd) {
      struct stat status {};
      if (::fstat(fd, &status) != 0 || status.st_ino != number_of(folder / "f.log.rebuild")) return 0;
      if (!std::exchange(seen, true)) return 0;
      return std::filesystem::exists(folder / "f.rebuild") ? EIO : 0;
    });
    EXPECT_EQ(code_of([&] { filter.rebuild({.salvage = true}); }), errc::io);
  }

  EXPECT_FALSE(std::filesystem::exists(folder / "f.rebuild"));
  EXPECT_FALSE(std::filesystem::exists(folder / "f.log.rebuild"));
  add(filter, 3000, 3000);
  EXPECT_EQ(count_found(filter.view(), numbers(0, 6000)), 6000u);
}

TEST(LoggedFilter, ARebuildEndsWhenItsWatchThrows) {
  const scratch_folder folder;
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
  add(filter, 0, 3000, 100);
  const ino_t old = number_of(folder / "f");
  const ino_t log = number_of(folder / "f.log");
  for (const int last : {1, 10, 1000}) {  // of some 30 records
    int calls = 0;
    const auto watch = [&] {
      if (++calls == last) throw std::runtime_error("enough");
    };
    if (last < 1000) {
      EXPECT_THROW(filter.rebuild({.salvage = true, .watch = watch}), std::runtime_error);
    } else {
      filter.rebuild({.salvage = true, .watch = watch});
    }
    EXPECT_EQ(number_of(folder / "f") == old, last < 1000);
    EXPECT_EQ(number_of(folder / "f.log") == log, last < 1000);
    EXPECT_FALSE(std::filesystem::exists(folder / "f.rebuild"));
    EXPECT_FALSE(std::filesystem::exists(folder / "f.log.rebuild"));
    EXPECT_EQ(count_found(filter.view(), numbers(0, 3000)), 3000u);
  }
}

TEST(LoggedFilter, NobodyReadsARebuildWhoMayNotReadTheFilter) {
  const scratch_folder folder;
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", of_integers);
  add(filter, 0, 3000);
  for (const char* name : {"f", "f.log"}) ::chmod((folder / name).c_str(), 0600);
  int looks = 0;
  {
    const watched_syncs watched([&](int) {
      for (const char* name : {"f.rebuild", "f.log.rebuild"}) {
        struct stat status {};
        if (::stat((folder / name).c_str(), &status) != 0 || status.st_size <= 256) continue;
        // (Just made, and without keys: a header of 256 bytes or an empty filter.)
        if (inspect(folder / name).usable && inspect(folder / name).info.clean) continue;
        EXPECT_EQ(status.st_mode & 0777, 0600u) << name;
        ++looks;
      }
      return 0;
    });
    filter.rebuild({.salvage = true});
  }

  EXPECT_GT(looks, 0);
}

// At a rate so low that a filter takes more than its log, by split_block: the first file that gets too large is a new
// filter.
TEST(LoggedFilter, ADiskThatFillsDuringARebuildLeavesTheOldFilter) {
  const scratch_folder folder;
  const std::string path = folder / "f";
  params p = of_integers;
  p.target_fpr = 1e-7;
  p.layout = "split_block";
  rebuilding_filter::create(path, p).close();

  const int status = status_of_child([&] {
    std::string notes;
    rebuilding_filter filter = rebuilding_filter::open(
        path, {.mode = access::read_write, .check = file_check::payload, .notes = [&](const std::string& text) {
                 notes += text;
               }});
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    add(filter, 0, 2000, 100);
    if (!notes.empty() || filter.capacity() < 2000) return 2;
    if (code_of([&] { filter.rebuild({.capacity = 1'000'000}); }) != errc::io) return 3;
    if (count_found(filter.view(), numbers(0, 2000)) != 2000) return 4;
    add(filter, 2000, 8000, 100);
    if (notes.find("could not be made larger") == std::string::npos) return 5;
    if (notes.find("could not be made larger") != notes.rfind("could not be made larger")) return 6;  // said once
    if (filter.capacity() >= 10'000 || count_found(filter.view(), numbers(0, 10'000)) != 10'000) return 7;
    filter.close();
    return 0;
  });

  EXPECT_EQ(status, 0);
  EXPECT_TRUE(inspect(path, file_check::payload).problems.empty());
  EXPECT_FALSE(std::filesystem::exists(path + ".rebuild"));
  rebuilding_filter filter = rebuilding_filter::open(path, {.mode = access::read_write, .check = file_check::payload});
  EXPECT_EQ(count_found(filter.view(), numbers(0, 10'000)), 10'000u);
  add(filter, 10'000, 100);
  EXPECT_GT(filter.capacity(), 10'100u);
}

// ---- killed

// Counts that a child and its parent share.
struct shared_counts {
  std::atomic<std::uint64_t> acknowledged = 0;
  std::atomic<std::uint64_t> wanted = 0;
};

class shared_memory {
 public:
  shared_memory()
      : at_(::mmap(nullptr, sizeof(shared_counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (at_ == MAP_FAILED) throw std::bad_alloc();
    new (at_) shared_counts;
  }
  shared_memory(const shared_memory&) = delete;
  shared_memory& operator=(const shared_memory&) = delete;
  ~shared_memory() { ::munmap(at_, sizeof(shared_counts)); }
  shared_counts* operator->() { return static_cast<shared_counts*>(at_); }

 private:
  void* at_;
};

// Rounds of work in a child that is killed when it has come so far; each begins with what the one before left.
void expect_nothing_lost(void (*work)(rebuilding_filter& filter, std::uint64_t first, shared_counts& counts)) {
  const scratch_folder folder;
  const std::string path = folder / "f";
  { rebuilding_filter::create(path, of_integers).close(); }
  shared_memory counts;
  std::mt19937_64 random(7);
  int killed = 0;
  const int rounds = is_long() ? 100 : 20;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t first = counts->acknowledged;
    counts->wanted = first + random() % 3000;
    const std::uint64_t spins = random() % 2'000'000;
    const pid_t child = start_child([&] {
      rebuilding_filter filter =
          rebuilding_filter::open(path, {.mode = access::read_write, .check = file_check::payload});
      work(filter, first, *counts.operator->());
      return 0;
    });
    while (counts->acknowledged < counts->wanted) ::sched_yield();
    for (volatile std::uint64_t i = 0; i < spins;) i = i + 1;
    ::kill(child, SIGKILL);
    killed += wait_for(child) == 128 + SIGKILL ? 1 : 0;

    const std::uint64_t there = counts->acknowledged;
    rebuilding_filter filter =
        rebuilding_filter::open(path, {.mode = access::read_write, .check = file_check::payload});
    ASSERT_EQ(count_found(filter.view(), numbers(0, there)), there) << "round " << round;
    ASSERT_TRUE(filter.log().read(0, [](std::span<const std::uint64_t>) {}).whole());
    ASSERT_GE(filter.log().keys(), there);
    if (round % 3 == 0) filter.rebuild();
    ASSERT_EQ(count_found(filter.view(), numbers(0, there)), there) << "round " << round << ", rebuilt";
    if (round % 2 == 0) filter.close();
  }
  EXPECT_EQ(killed, rounds);
}

TEST(LoggedFilter, KilledWhileAppendingItHasAllThatWasAcknowledged) {
  expect_nothing_lost([](rebuilding_filter& filter, std::uint64_t first, shared_counts& counts) {
    for (std::uint64_t at = first;; at += 7) {
      filter.insert(std::span<const std::uint64_t>(numbers(at, 7)));
      counts.acknowledged = at + 7;
    }
  });
}

TEST(LoggedFilter, KilledDuringRebuildsItHasAllThatWasAcknowledged) {
  expect_nothing_lost([](rebuilding_filter& filter, std::uint64_t first, shared_counts& counts) {
    for (std::uint64_t at = first;; at += 300) {
      filter.insert(std::span<const std::uint64_t>(numbers(at, 300)));
      counts.acknowledged = at + 300;
      filter.rebuild();
    }
  });
}

// Each key ten times, so that the log is written anew, and both files are swapped.
TEST(LoggedFilter, KilledDuringSwapsItHasAllThatWasAcknowledged) {
  expect_nothing_lost([](rebuilding_filter& filter, std::uint64_t first, shared_counts& counts) {
    for (std::uint64_t at = first;; at += 300) {
      for (int copy = 0; copy < 40; ++copy) filter.insert(std::span<const std::uint64_t>(numbers(at, 300)));
      counts.acknowledged = at + 300;
      filter.rebuild({.salvage = true});  // which always writes the log anew
    }
  });
}

// A thread makes the next filter while keys come in.
TEST(LoggedFilter, GrowsByAThreadWhileKeysComeIn) {
  const scratch_folder folder;
  params p = of_integers;
  p.capacity = 100'000;
  rebuilding_filter filter = rebuilding_filter::create(folder / "f", p);

  add(filter, 0, 300'000, 100);

  EXPECT_GE(filter.rebuilds(), 4u);
  EXPECT_EQ(count_found(filter.view(), numbers(0, 300'000)), 300'000u);
  EXPECT_LE(filter.insert_count(), filter.capacity());
}

TEST(LoggedFilter, AThreadThatIsNotWaitedForEndsWithTheFilter) {
  const scratch_folder folder;
  params p = of_integers;
  p.capacity = 100'000;
  {
    rebuilding_filter filter = rebuilding_filter::create(folder / "f", p);
    add(filter, 0, 98'000);
    filter.abandon();
  }

  rebuilding_filter filter =
      rebuilding_filter::open(folder / "f", {.mode = access::read_write, .check = file_check::payload});

  EXPECT_EQ(count_found(filter.view(), numbers(0, 98'000)), 98'000u);
  EXPECT_FALSE(std::filesystem::exists(folder / "f.rebuild"));
}

}  // namespace
}  // namespace bloomery
