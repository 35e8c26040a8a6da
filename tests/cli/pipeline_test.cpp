// Parts of the command on their own: the pipeline, the exact set, and the splitting of input.
#include "app/pipeline.hpp"
#include "cli/io/hash_set.hpp"
#include "cli/io/records.hpp"

#include "support/test.hpp"

#include <zlib.h>
#include <zstd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

namespace bloomery::cli {

using namespace app;

namespace {

using namespace bloomery_tests;
using namespace std::string_view_literals;

// ---- pipeline -------------------------------------------------------------------------------------------------------

struct number_batch {
  int number = -1;
  int square = -1;
};

void nothing_to_unblock() {}

// Reads 0 .. count - 1.
auto numbers_up_to(int count) {
  return [count, next = 0](number_batch& batch) mutable {
    if (next == count) return false;
    batch.number = next++;
    return true;
  };
}

class PipelineOfWorkers : public testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Each, PipelineOfWorkers, testing::Values(0, 1, 2, 3, 4, 8), testing::PrintToStringParamName());

TEST_P(PipelineOfWorkers, FinishesAllBatchesInTheOrderOfReading) {
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> delays(500);
  for (std::uint64_t& delay : delays) delay = random() % 50;
  std::vector<int> finished, squares;

  run_pipeline<number_batch>(
      GetParam(), numbers_up_to(500),
      [&](number_batch& batch) {
        std::this_thread::sleep_for(std::chrono::microseconds(delays[static_cast<std::size_t>(batch.number)]));
        batch.square = batch.number * batch.number;
      },
      [&](number_batch& batch) {
        finished.push_back(batch.number);
        squares.push_back(batch.square);
        return true;
      },
      nothing_to_unblock);

  ASSERT_EQ(finished.size(), 500u);
  for (int i = 0; i < 500; ++i) {
    EXPECT_EQ(finished[static_cast<std::size_t>(i)], i);
    EXPECT_EQ(squares[static_cast<std::size_t>(i)], i * i);
  }
}

TEST_P(PipelineOfWorkers, NeverReadsTwiceNorFinishesTwiceAtOnce) {
  std::atomic<int> reading{0}, finishing{0};
  std::atomic<bool> overlapped{false};
  auto numbers = numbers_up_to(300);
  const auto alone = [&](std::atomic<int>& inside) {
    if (inside.fetch_add(1) != 0) overlapped = true;
    std::this_thread::yield();
    inside.fetch_sub(1);
  };

  run_pipeline<number_batch>(
      GetParam(),
      [&](number_batch& batch) {
        alone(reading);
        return numbers(batch);
      },
      [](number_batch&) {},
      [&](number_batch&) {
        alone(finishing);
        return true;
      },
      nothing_to_unblock);

  EXPECT_FALSE(overlapped);
}

TEST_P(PipelineOfWorkers, EachStepTakesTheBatchesInOrder) {
  constexpr unsigned steps = 5;
  std::vector<std::vector<int>> taken(steps);
  std::vector<std::atomic<int>> inside(steps);
  std::vector<int> finished;
  std::atomic<bool> overlapped{false};

  run_pipeline<number_batch>(
      GetParam(), numbers_up_to(400), [](number_batch& batch) { batch.square = 0; }, steps,
      [&](number_batch& batch, unsigned step) {
        if (inside[step].fetch_add(1) != 0) overlapped = true;
        if (batch.square != static_cast<int>(step)) overlapped = true;  // after all earlier steps of this batch
        ++batch.square;
        taken[step].push_back(batch.number);
        std::this_thread::yield();
        inside[step].fetch_sub(1);
      },
      [&](number_batch& batch) {
        if (batch.square != steps) overlapped = true;
        finished.push_back(batch.number);
        return true;
      },
      nothing_to_unblock);

  std::vector<int> all(400);
  for (int i = 0; i < 400; ++i) all[static_cast<std::size_t>(i)] = i;
  EXPECT_FALSE(overlapped);
  EXPECT_EQ(finished, all);
  for (const auto& numbers : taken) EXPECT_EQ(numbers, all);
}

TEST_P(PipelineOfWorkers, AFailedStepEndsItAfterTheEarlierBatches) {
  for (int round = 0; round < 50; ++round) {
    int finished = 0;
    const auto run = [&] {
      run_pipeline<number_batch>(
          GetParam(), numbers_up_to(100), [](number_batch&) {}, 3,
          [](number_batch& batch, unsigned step) {
            if (batch.number == 20 && step == 1) throw std::runtime_error("no");
          },
          [&](number_batch&) {
            ++finished;
            return true;
          },
          nothing_to_unblock);
    };
    EXPECT_THROW(run(), std::runtime_error);
    EXPECT_EQ(finished, 20);
  }
}

TEST_P(PipelineOfWorkers, StopsIfFinishReturnsFalse) {
  for (int round = 0; round < 300; ++round) {
    int finished = 0;
    std::atomic<int> read{0};

    run_pipeline<number_batch>(
        GetParam(),
        [&](number_batch& batch) {
          batch.number = read++;
          return true;  // without end
        },
        [](number_batch&) {},
        [&](number_batch& batch) {
          ++finished;
          return batch.number < 20;
        },
        nothing_to_unblock);

    ASSERT_EQ(finished, 21);
  }
}

// A read that waits for input which never comes.
TEST(Pipeline, UnblocksAWaitingReadWhenItStops) {
  for (const bool by_exception : {false, true}) {
    std::mutex mutex;
    std::condition_variable came;
    bool unblocked = false;
    int next = 0;
    const auto run = [&] {
      run_pipeline<number_batch>(
          4,
          [&](number_batch& batch) {
            std::unique_lock lock(mutex);
            batch.number = next++;
            if (batch.number > 0) came.wait(lock, [&] { return unblocked; });
            return batch.number == 0;
          },
          [](number_batch&) {},
          [&](number_batch&) {
            if (by_exception) throw std::runtime_error("finish failed");
            return false;
          },
          [&] {
            const std::lock_guard lock(mutex);
            unblocked = true;
            came.notify_all();
          });
    };

    if (by_exception)
      EXPECT_THROW(run(), std::runtime_error);
    else
      run();

    EXPECT_TRUE(unblocked);
  }
}

TEST_P(PipelineOfWorkers, DoesNothingWithoutInput) {
  int calls = 0;

  run_pipeline<number_batch>(
      GetParam(), [](number_batch&) { return false; }, [&](number_batch&) { ++calls; },
      [&](number_batch&) {
        ++calls;
        return true;
      },
      nothing_to_unblock);

  EXPECT_EQ(calls, 0);
}

TEST_P(PipelineOfWorkers, ThrowsWhatAnyStageThrowsAndStops) {
  for (const std::string stage : {"read", "prepare", "finish"}) {
    for (const int at : {0, 1, 57}) {
      std::vector<int> finished;
      std::atomic<int> read{0};
      const auto maybe_throw = [&](const char* name, int number) {
        if (stage == name && number == at) throw std::runtime_error(stage + " failed");
      };
      const auto run = [&] {
        run_pipeline<number_batch>(
            GetParam(),
            [&](number_batch& batch) {
              batch.number = read++;
              maybe_throw("read", batch.number);
              return true;  // without end: only the exception stops it
            },
            [&](number_batch& batch) { maybe_throw("prepare", batch.number); },
            [&](number_batch& batch) {
              maybe_throw("finish", batch.number);
              finished.push_back(batch.number);
              return true;
            },
            nothing_to_unblock);
      };

      std::string thrown;
      try {
        run();
      } catch (const std::runtime_error& e) {
        thrown = e.what();
      }

      EXPECT_EQ(thrown, stage + " failed") << at;
      EXPECT_LE(finished.size(), static_cast<std::size_t>(at));
      for (std::size_t i = 0; i < finished.size(); ++i) EXPECT_EQ(finished[i], static_cast<int>(i));
    }
  }
}

TEST(Pipeline, PreparesSideBySide) {
  std::atomic<int> inside{0}, most{0};

  run_pipeline<number_batch>(
      4, numbers_up_to(40),
      [&](number_batch&) {
        const int now = ++inside;
        for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        --inside;
      },
      [](number_batch&) { return true; }, nothing_to_unblock);

  EXPECT_GT(most, 1);
  EXPECT_LE(most, 4);
}

// ---- hash_set -------------------------------------------------------------------------------------------------------

TEST(HashSet, AgreesWithAnOrderedSet) {
  std::mt19937_64 random(1);
  for (const std::size_t most : {1u, 2u, 3u, 100u, 5000u}) {
    SCOPED_TRACE(most);
    hash_set set(most);
    std::set<std::pair<std::uint64_t, std::uint64_t>> truth;
    for (int round = 0; round < 2; ++round) {
      while (!set.full()) {
        // Few different values, among them 0 and many with the same lower bits of hi, which collide.
        // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a set with no room is full at once
        const key_hash hash{random() % 3, (random() % (2 * most)) << (random() % 2 == 0 ? 0 : 40)};
        ASSERT_EQ(set.insert(hash), truth.emplace(hash.hash64, hash.high64).second);
        ASSERT_EQ(set.size(), truth.size());
      }
      EXPECT_EQ(set.size(), most);
      set.clear();
      truth.clear();
      EXPECT_EQ(set.size(), 0u);
    }
  }
}

TEST(HashSet, HoldsTheHashThatIsAllZeros) {
  hash_set set(10);

  EXPECT_TRUE(set.insert({0, 0}));
  EXPECT_FALSE(set.insert({0, 0}));
  EXPECT_TRUE(set.insert({0, 1}));
  EXPECT_TRUE(set.insert({1, 0}));
  EXPECT_EQ(set.size(), 3u);
  set.clear();
  EXPECT_TRUE(set.insert({0, 0}));
}

TEST(HashSet, OfNoRoomIsFull) { EXPECT_TRUE(hash_set(0).full()); }

// ---- lines and keys -------------------------------------------------------------------------------------------------

std::vector<std::string_view> lines_of(std::string_view text, char end = '\n') {
  std::vector<std::string_view> lines{"left over"};
  cut_lines(text, end, lines);
  return lines;
}

TEST(CutLines, SplitsAtLineEndsOnly) {
  EXPECT_THAT(lines_of(""), IsEmpty());
  EXPECT_THAT(lines_of("\n"), ElementsAre(""));
  EXPECT_THAT(lines_of("a"), ElementsAre("a"));
  EXPECT_THAT(lines_of("a\n"), ElementsAre("a"));
  EXPECT_THAT(lines_of("a\nb"), ElementsAre("a", "b"));
  EXPECT_THAT(lines_of("\n\na\n\n"), ElementsAre("", "", "a", ""));
  EXPECT_THAT(lines_of("a\0b\r\n\xFF\n"sv), ElementsAre("a\0b\r"sv, "\xFF"));
  EXPECT_THAT(lines_of("a\nb\0c\0"sv, '\0'), ElementsAre("a\nb", "c"));
}

input_options fields(std::uint64_t field, std::string delimiter = "", bool crlf = false, bool nul_separated = false) {
  input_options options;
  if (field > 0) options.fields = {{field, field}};
  options.delimiter = std::move(delimiter);
  options.crlf = crlf;
  options.nul_separated = nul_separated;
  return options;
}

input_options inputs(std::vector<std::string> files, bool nul_separated = false) {
  input_options options;
  options.files = std::move(files);
  options.nul_separated = nul_separated;
  return options;
}

std::vector<std::string_view> keys_of(std::vector<std::string_view> lines, const input_options& options) {
  std::vector<std::string_view> keys{"left over"};
  made_keys made;
  cut_keys(lines, options, made, keys);
  return keys;
}

TEST(CutKeys, TakesTheFieldAskedFor) {
  const std::vector<std::string_view> lines{"a\tb\tc", "a", "", "\t", "a\t", "\tb", "a,b\tc,d"};

  EXPECT_THAT(keys_of(lines, fields(0)), testing::ElementsAreArray(lines));
  EXPECT_THAT(keys_of(lines, fields(1)), ElementsAre("a", "a", "", "", "a", "", "a,b"));
  EXPECT_THAT(keys_of(lines, fields(2)), ElementsAre("b", "", "", "", "", "b", "c,d"));
  EXPECT_THAT(keys_of(lines, fields(3)), ElementsAre("c", "", "", "", "", "", ""));
  EXPECT_THAT(keys_of(lines, fields(2, ",")), ElementsAre("", "", "", "", "", "", "b\tc"));
  EXPECT_THAT(keys_of(lines, fields(100'000)), testing::Each(""));
}

TEST(CutKeys, DropsOneCarriageReturnWhereAsked) {
  EXPECT_THAT(keys_of({"a\r", "a", "\r", "a\r\r", "a\rb"}, fields(0, "", true)),
              ElementsAre("a", "a", "", "a\r", "a\rb"));
  EXPECT_THAT(keys_of({"a\tb\r"}, fields(2, "", true)), ElementsAre("b"));
  EXPECT_THAT(keys_of({"a\tb\r"}, fields(2)), ElementsAre("b\r"));
}

TEST(InputOptions, ThatContradictEachOtherAreRefused) {
  EXPECT_EQ(code_of([] { check(fields(1, "a\n")); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { check(fields(0, ",")); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { check(fields(0, "", true, true)); }), errc::invalid_argument);
  EXPECT_EQ(code_of([] { check(fields(1, ",")); }), std::nullopt);
  EXPECT_EQ(code_of([] { check(fields(1, ",,")); }), std::nullopt);
}

// ---- reader ---------------------------------------------------------------------------------------------------------

// All lines that a reader gives, from all its chunks.
std::vector<std::string> lines_read(const input_options& options) {
  std::vector<std::string> all;
  std::vector<std::string_view> lines;
  reader in(options);
  for (chunk piece; in.next(piece);) {
    EXPECT_GT(piece.size, 0u);
    cut_lines(piece.text(), options.line_end(), lines);
    all.insert(all.end(), lines.begin(), lines.end());
  }
  return all;
}

std::string gzip_of(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string zstd_of(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

// Lines of many lengths: empty ones, some around the size of a chunk (256 KiB) and one of a megabyte.
std::vector<std::string> many_lines() {
  std::mt19937 random(7);
  std::vector<std::string> lines;
  lines.reserve(21'000);
  for (int i = 0; i < 20'000; ++i) lines.emplace_back(random() % 60, static_cast<char>('a' + i % 26));
  for (const int length : {262'143, 262'144, 262'145, 1'000'000, 0, 0, 100'000}) lines.emplace_back(length, 'L');
  for (int i = 0; i < 100; ++i) lines.push_back("after " + std::to_string(i));
  return lines;
}

std::string joined(const std::vector<std::string>& lines, char end) {
  std::string text;
  for (const std::string& line : lines) text += line + end;
  return text;
}

TEST(Reader, GivesEveryLineWholeAndInOrder) {
  const scratch_folder folder;
  const auto lines = many_lines();
  for (const bool nul : {false, true}) {
    const std::string text = joined(lines, nul ? '\0' : '\n');
    write_file(folder / "plain", text);
    write_file(folder / "no end", text.substr(0, text.size() - 1));
    write_file(folder / "gz", gzip_of(text));
    write_file(folder / "two members.gz", gzip_of(text.substr(0, 100'003)) + gzip_of(text.substr(100'003)));
    write_file(folder / "zst", zstd_of(text));
    write_file(folder / "two frames.zst", zstd_of(text.substr(0, 100'003)) + zstd_of(text.substr(100'003)));
    for (const char* name : {"plain", "no end", "gz", "two members.gz", "zst", "two frames.zst"}) {
      EXPECT_TRUE(lines_read(inputs({folder / name}, nul)) == lines) << name;
    }
  }
}

TEST(Reader, EndsALineWithItsFile) {
  const scratch_folder folder;
  write_file(folder / "a", "1\n2"s);
  write_file(folder / "b", ""s);
  write_file(folder / "c", "3\n\n"s);

  EXPECT_THAT(lines_read(inputs({folder / "a", folder / "b", folder / "c", folder / "a"})),
              ElementsAre("1", "2", "3", "", "1", "2"));
}

TEST(Reader, CountsLinesAsItReadsThem) {
  const scratch_folder folder;
  const auto lines = many_lines();
  write_file(folder / "plain", joined(lines, '\n'));
  write_file(folder / "gz", gzip_of("a\nb"));

  const text_size size = measure_text(inputs({folder / "plain", folder / "gz"}));

  EXPECT_EQ(size.lines, lines.size() + 2);
  EXPECT_EQ(size.bytes, joined(lines, '\n').size() + 3);
}

TEST(Reader, ReportsItsProgressInBytesOnDisk) {
  const scratch_folder folder;
  write_file(folder / "f", "a\nb\n"s);
  write_file(folder / "g", "c\n"s);
  const input_options options = inputs({folder / "f", folder / "g"});
  reader in(options);
  for (chunk piece; in.next(piece);) {
  }

  EXPECT_EQ(in.bytes_total(), 6u);
  EXPECT_EQ(in.bytes_read(), 6u);
}

TEST(Reader, ReportsDamagedCompressedInput) {
  const scratch_folder folder;
  const std::string gz = gzip_of(joined(many_lines(), '\n'));
  const std::string zst = zstd_of(joined(many_lines(), '\n'));
  std::string flipped = gz;
  flipped[gz.size() - 6] ^= 1;  // in the checksum
  write_file(folder / "cut.gz", gz.substr(0, gz.size() - 1));
  write_file(folder / "magic.gz", gz.substr(0, 2));
  write_file(folder / "flipped.gz", flipped);
  write_file(folder / "rubbish after.gz", gz + "rubbish");
  write_file(folder / "cut.zst", zst.substr(0, zst.size() - 1));
  write_file(folder / "magic.zst", zst.substr(0, 4));

  for (const char* name : {"cut.gz", "magic.gz", "flipped.gz", "rubbish after.gz", "cut.zst", "magic.zst"}) {
    EXPECT_ERROR(lines_read(inputs({folder / name})), errc::damaged, name);
  }
}

TEST(Reader, RefusesMissingFilesAndFoldersBeforeItReadsTheFirst) {
  const scratch_folder folder;
  write_file(folder / "f", "a\n"s);
  const input_options missing = inputs({folder / "f", folder / "missing"});
  const input_options a_folder = inputs({folder / "f", folder.path()});

  EXPECT_EQ(code_of([&] { reader in(missing); }), errc::not_found);
  EXPECT_EQ(code_of([&] { reader in(a_folder); }), errc::io);
}

}  // namespace
}  // namespace bloomery::cli
