// Verification of pages before their first use: a damaged file never gives a wrong answer, for any kind of filter.
//
// The reference is the filter in memory that was saved.
#include <bloomery/any_filter.hpp>
#include <bloomery/cascade_builder.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/scheme.hpp>
#include <bloomery/static_filter.hpp>

#include "file/format.hpp"
#include "file/sample_file.hpp"
#include "support/test.hpp"

#include <iomanip>
#include <sstream>
#include <thread>

namespace bloomery {
namespace {

using namespace bloomery_tests;

constexpr std::size_t present_keys = 10'000;  // keys that are in, followed by as many that are not

struct kind {
  std::string name;
  std::function<any_filter()> make;
};

any_filter filled(params p) {
  p.capacity = 30'000;
  p.target_fpr = 0.001;
  any_filter filter(complete(std::move(p)));
  const auto texts = sample_texts(present_keys);
  const std::vector<std::string_view> keys(texts.begin(), texts.end());
  filter.insert(keys);
  return filter;
}

template <class Fingerprint>
any_filter sealed_filter() {
  const auto texts = sample_texts(8 * present_keys);  // for some forty pages
  const std::vector<std::string_view> keys(texts.begin(), texts.end());
  const scratch_folder folder;
  static_filter<std::string_view, Fingerprint>::build(keys).save(folder / "f");
  return any_filter::load(folder / "f");
}

std::vector<kind> kinds() {
  std::vector<kind> all;
  for (const char* layout :
       {"split_block", "split_block512", "blocked", "blocked_page", "classic", "counting", "quotient"})
    all.push_back({layout, [layout] { return filled({.layout = layout}); }});
  for (const char* layout : {"sliding", "sliding64"})
    all.push_back({layout, [layout] { return filled({.layout = layout, .extra = window_of_keys(70'000)}); }});
  for (const scheme& row : schemes()) {
    const std::string name(row.name);
    all.push_back({name, [name] { return filled({.scheme = name}); }});
  }
  all.push_back({"ribbon9", [] {
                   const auto texts = sample_texts(8 * present_keys);
                   return any_filter::build_static({}, texts, 9, 1, static_structure::ribbon);
                 }});
  all.push_back({"cascade9", [] {
                   std::vector<std::uint64_t> hash64s;
                   for (const std::string& text : sample_texts(8 * present_keys))
                     hash64s.push_back(xxh3_64{}(text).hash64);
                   cascade_builder builder(hash64s, 9);
                   builder.build({.hash = "xxh3_64"});
                   const scratch_folder folder;
                   builder.save(folder / "f");
                   return any_filter::load(folder / "f");
                 }});
  all.push_back({"fuse11", sealed_filter<fingerprint_bits<11>>});
  all.push_back({"fuse16", sealed_filter<std::uint16_t>});
  return all;
}

class PagesOf : public testing::TestWithParam<kind> {
 protected:
  PagesOf() : original_(GetParam().make()) {
    original_.save(path());
    whole_ = read_file(path());
    pages_ = (original_.byte_size() - 1) / page + 1;
  }

  std::string path() const { return folder_ / "f"; }
  any_filter on_use() const { return any_filter::open(path(), {.check = file_check::on_use}); }

  // Another value for a byte of the payload.
  void damage(std::size_t at, std::mt19937_64& random) const {
    bytes file = whole_;
    std::uint8_t& byte = file[page + at];
    const auto before = byte;
    if (byte == 0 || random() % 2 == 0)
      byte = static_cast<std::uint8_t>(byte ^ 1u << random() % 8);
    else
      byte = 0;
    ASSERT_NE(byte, before);
    write_file(path(), file);
  }

  scratch_folder folder_;
  any_filter original_;
  bytes whole_;
  std::size_t pages_ = 0;
};

TEST_P(PagesOf, ADamagedFileAnswersEachKeyCorrectlyOrReportsDamage) {
  std::mt19937_64 random(1);
  const auto texts = sample_texts(2 * present_keys);
  std::size_t reported = 0;
  std::size_t answered = 0;
  for (int round = 0; round < 30; ++round) {
    damage(random() % original_.byte_size(), random);
    std::optional<any_filter> file;
    if (const auto refused = error_of([&] { file.emplace(on_use()); })) {  // its state, or its partitions
      ASSERT_EQ(refused->code(), errc::damaged);
      ++reported;
      continue;
    }
    for (std::size_t i = 0; i < 60; ++i) {  // few enough for pages to be verified one by one, at first
      const std::string& text = texts[random() % texts.size()];
      const std::string_view key = text;
      const auto alone = [&] { return file->may_contain(key); };
      const auto in_batch = [&] {
        std::uint64_t answer = 0;
        file->may_contain(std::span(&key, 1), std::span(&answer, 1));
        return answer != 0;
      };
      const auto is_right_or_reported = [&](auto look_up) {
        bool answer = false;
        if (const auto thrown = error_of([&] { answer = look_up(); })) {
          EXPECT_EQ(thrown->code(), errc::damaged) << thrown->what();
          ++reported;
        } else {
          EXPECT_EQ(answer, original_.may_contain(key)) << text;
          ++answered;
        }
      };
      if (i % 2 == 0) is_right_or_reported(alone);
      is_right_or_reported(in_batch);
      if (i % 2 != 0) is_right_or_reported(alone);
    }
  }
  EXPECT_GT(reported, 0u);
  EXPECT_GT(answered, 0u);
}

TEST_P(PagesOf, ManyLookupsFindDamageThatNoneOfTheirKeysTouches) {
  std::mt19937_64 random(2);
  const auto texts = sample_texts(2 * present_keys);
  const std::vector<std::string_view> keys(texts.begin(), texts.end());
  std::vector<std::uint64_t> answers(keys.size() / 64 + 1);
  for (int round = 0; round < 5; ++round) {
    damage(random() % original_.byte_size(), random);

    EXPECT_EQ(code_of([&] { on_use().may_contain(keys, answers); }), errc::damaged);
  }
}

TEST_P(PagesOf, CallsThatReadAllBitsReportDamageAnywhere) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 5; ++round) {
    damage(random() % original_.byte_size(), random);
    const auto refused = [&](const std::function<void(const any_filter&)>& call) {
      return code_of([&] { call(on_use()); });
    };

    EXPECT_EQ(refused([](const any_filter& f) { f.verify(); }), errc::damaged);
    EXPECT_EQ(refused([](const any_filter& f) { static_cast<void>(f.clone()); }), errc::damaged);
    EXPECT_EQ(refused([](const any_filter& f) { static_cast<void>(f.to_bytes()); }), errc::damaged);
    EXPECT_EQ(refused([](const any_filter& f) { static_cast<void>(f.current_fpr()); }), errc::damaged);
    EXPECT_EQ(refused([](const any_filter& f) { static_cast<void>(f.fill_ratio()); }), errc::damaged);
    EXPECT_EQ(refused([&](const any_filter& f) { static_cast<void>(f == original_); }), errc::damaged);
    EXPECT_EQ(code_of([&] { make_handle(on_use())->info(info_depth::bits); }), errc::damaged);
    EXPECT_EQ(code_of([&] { any_filter::open(path()); }), errc::damaged) << "small: all of it at open";
    EXPECT_EQ(code_of([&] { any_filter::open(path(), {.check = file_check::header}); }).value_or(errc::damaged),
              errc::damaged);
  }
}

TEST_P(PagesOf, AWholeFileAnswersAsTheFilterItWasSavedFrom) {
  const auto texts = sample_texts(2 * present_keys);
  const std::vector<std::string_view> keys(texts.begin(), texts.end());
  std::vector<std::uint64_t> expected(keys.size() / 64 + 1);
  std::vector<std::uint64_t> answers(keys.size() / 64 + 1);
  original_.may_contain(keys, expected);
  const any_filter one_by_one = on_use();
  const any_filter at_once = on_use();

  at_once.may_contain(keys, answers);

  EXPECT_EQ(answers, expected);
  for (std::size_t i = 0; i < 40; ++i)
    ASSERT_EQ(one_by_one.may_contain(keys[997 * i % keys.size()]),
              (expected[997 * i % keys.size() / 64] >> 997 * i % keys.size() % 64 & 1) != 0);
  EXPECT_TRUE(one_by_one == original_);
}

INSTANTIATE_TEST_SUITE_P(Damaged, PagesOf, testing::ValuesIn(kinds()), [](const auto& of) { return of.param.name; });

TEST(PageCheck, ASingleKeyOfAQuotientFilterIsReportedIfItsBlocksAreDamaged) {
  const scratch_folder folder;
  any_filter filter(complete({.layout = "quotient", .capacity = present_keys, .target_fpr = 0.01}));
  filter.insert("Madrid");
  filter.save(folder / "f");
  bytes file = read_file(folder / "f");
  for (const std::uint64_t block : filter.cells("Madrid"))
    std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(page + 64 * block), 64, std::uint8_t{0});
  write_file(folder / "f", file);
  const any_filter damaged = any_filter::open(folder / "f", {.check = file_check::on_use});

  EXPECT_EQ(code_of([&] { static_cast<void>(damaged.may_contain("Madrid")); }), errc::damaged);
}

TEST(PageCheck, NamesThePageItsBytesAndBothChecksums) {
  const scratch_folder folder;
  filled({.layout = "classic"}).save(folder / "f");
  bytes file = read_file(folder / "f");
  const std::size_t pages = (bytes_for(any_filter::open(folder / "f").bit_size()) - 1) / page + 1;
  ASSERT_GT(pages, 3u);
  file[page + 2 * page + 17] ^= 1;
  write_file(folder / "f", file);
  const auto hexadecimal = [](std::uint64_t number) {
    std::ostringstream text;
    text << "0x" << std::hex << std::setw(16) << std::setfill('0') << number;
    return text.str();
  };
  const auto third = std::span(file).subspan(3 * page).first<page>();

  const auto thrown = error_of([&] { any_filter::open(folder / "f", {.check = file_check::on_use}).verify(); });

  ASSERT_TRUE(thrown);
  EXPECT_EQ(thrown->code(), errc::damaged);
  EXPECT_EQ(thrown->text().where, folder / "f");
  EXPECT_EQ(thrown->text().what, "page 2 (bytes 12288 to 16383) does not match its checksum");
  EXPECT_EQ(thrown->text().expected, hexadecimal(bloomery_tests::get<std::uint64_t>(file, (1 + pages) * page + 16)));
  EXPECT_EQ(thrown->text().found, hexadecimal(format::page_checksum(third)));
  EXPECT_EQ(thrown->text().hint.code, hint::restore_file);

  file[page + 17] ^= 1;
  write_file(folder / "f", file);
  EXPECT_THAT(error_of([&] { any_filter::open(folder / "f"); })->what(),
              HasSubstr("page 0 (bytes 4096 to 8191) and 1 other page do not match their checksums"));
}

TEST(PageCheck, OfAKeyWithABitInTheLastByteOfAPageLeavesOutTheNextPage) {
  const params p = complete({.layout = "split_block", .geometry = {8 * 64 * page, 8}, .capacity = 1000});
  for (const std::string& key : sample_texts(10'000)) {
    any_filter filter(p);
    filter.insert(key);
    std::size_t at = page - 1;
    while (at < filter.byte_size() && filter.bytes()[at] == 0) at += page;
    if (at + 1 >= filter.byte_size()) continue;
    const scratch_folder folder;
    filter.save(folder / "f");
    bytes file = read_file(folder / "f");
    file[page + at + 1] ^= 1;
    write_file(folder / "f", file);

    EXPECT_TRUE(any_filter::open(folder / "f", {.check = file_check::on_use}).may_contain(key));
    return;
  }
  FAIL() << "no key has such a bit";
}

TEST(PageCheck, IsLeftOutWithFileCheckHeaderAndThenPresentKeysAreDenied) {
  const scratch_folder folder;
  filled({.layout = "split_block"}).save(folder / "f");
  bytes file = read_file(folder / "f");
  std::fill(file.begin() + page, file.begin() + 2 * page, std::uint8_t{0});
  write_file(folder / "f", file);
  const any_filter unverified = any_filter::open(folder / "f", {.check = file_check::header});
  std::size_t denied = 0;

  for (const std::string& text : sample_texts(present_keys)) denied += unverified.may_contain(text) ? 0 : 1;

  EXPECT_GT(denied, 100u);
}

TEST(PageCheck, EndsWithANoteWhenAnotherProcessBeginsToWrite) {
  const scratch_folder folder;
  filled({.layout = "classic"}).save(folder / "f");
  std::vector<std::string> notes;
  const any_filter reader = any_filter::open(
      folder / "f", {.check = file_check::on_use, .notes = [&](const std::string& note) { notes.push_back(note); }});
  any_filter writer = any_filter::open(folder / "f", {.mode = access::read_write});
  for (int i = 0; i < 20'000; ++i) writer.insert("more-" + std::to_string(i));

  reader.verify();

  EXPECT_TRUE(reader.may_contain("key-1"));
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_THAT(notes.front(), HasSubstr("another process has started to write the file"));
}

TEST(PageCheck, OfAFileThatWasNotClosedCleanlyIsNotPossible) {
  const scratch_folder folder;
  filled({.layout = "classic"}).save(folder / "f");
  const any_filter writer = any_filter::open(folder / "f", {.mode = access::read_write});

  const any_filter reader = any_filter::open(folder / "f", {.check = file_check::on_use});

  EXPECT_FALSE(reader.opened_from()->clean);
  reader.verify();
  EXPECT_TRUE(reader.may_contain("key-1"));
}

TEST(PageCheck, OfAFileForWritingIsDoneAtOpen) {
  const scratch_folder folder;
  filled({.layout = "classic"}).save(folder / "f");
  bytes file = read_file(folder / "f");
  file[page + 5] ^= 1;
  write_file(folder / "f", file);

  for (const file_check check : {file_check::automatic, file_check::on_use, file_check::payload}) {
    EXPECT_EQ(code_of([&] { any_filter::open(folder / "f", {.mode = access::read_write, .check = check}); }),
              errc::damaged);
  }
  EXPECT_TRUE(inspect(folder / "f").info.clean) << "it was not marked as being written";
}

TEST(PageCheck, StopsWhenItsCallerRequestsIt) {
  const scratch_folder folder;
  any_filter(complete({.layout = "classic", .geometry = {std::uint64_t{32} << 20, 7}})).save(folder / "f");
  const any_filter file = any_filter::open(folder / "f", {.check = file_check::on_use});
  std::vector<double> shares;

  file.verify([&](double share) {
    shares.push_back(share);
    return shares.size() < 2;
  });

  EXPECT_EQ(shares, (std::vector<double>{0.25, 0.5}));
}

TEST(PageCheck, IsSharedByThreads) {
  const scratch_folder folder;
  const any_filter original = filled({.layout = "blocked_page"});
  original.save(folder / "f");
  const any_filter file = any_filter::open(folder / "f", {.check = file_check::on_use});
  const auto texts = sample_texts(2 * present_keys);
  const std::vector<std::string_view> keys(texts.begin(), texts.end());
  std::vector<std::uint64_t> expected(keys.size() / 64 + 1);
  original.may_contain(keys, expected);
  std::vector<std::vector<std::uint64_t>> answers(4, std::vector<std::uint64_t>(keys.size() / 64 + 1));
  std::vector<std::thread> threads;

  for (auto& some : answers) threads.emplace_back([&] { file.may_contain(keys, some); });
  for (std::thread& thread : threads) thread.join();

  for (const auto& some : answers) EXPECT_EQ(some, expected);
}

}  // namespace
}  // namespace bloomery
