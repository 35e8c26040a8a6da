// filter_handle::info(): the facts of each kind of filter, compared with bytes, files and keys.
#include <bloomery/any_filter.hpp>
#include <bloomery/detail/fuse.hpp>
#include <bloomery/detail/key_log.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/mapped_storage.hpp>
#include <bloomery/measure.hpp>
#include <bloomery/rebuilding_filter.hpp>
#include <bloomery/static_filter.hpp>

#include "support/test.hpp"

#include <bit>

namespace bloomery_tests {
namespace {

using namespace bloomery;

std::vector<std::string> keys(int count, const std::string& prefix = "key") {
  std::vector<std::string> list;
  for (int i = 0; i < count; ++i) list.push_back(prefix + std::to_string(i));
  return list;
}

std::uint64_t ones_in(std::span<const std::uint8_t> bytes) {
  std::uint64_t ones = 0;
  for (const std::uint8_t byte : bytes) ones += static_cast<std::uint64_t>(std::popcount(byte));
  return ones;
}

any_filter filter_of(const params& wanted, int count) {
  any_filter filter(complete(wanted));
  for (const std::string& key : keys(count)) filter.insert(key);
  return filter;
}

class Facts : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }

  // A rebuilding filter that was closed.
  std::string make_rebuilding(int count) const {
    rebuilding_filter made = rebuilding_filter::create(path("f"), {.target_fpr = 0.01});
    for (const std::string& key : keys(count)) made.insert(key);
    made.close();
    return path("f");
  }

 private:
  scratch_folder folder_;
};

TEST_F(Facts, APlainFilterCountsItsBitsAndKeys) {
  for (const char* layout : {"split_block", "split_block512", "blocked", "blocked_page", "classic"}) {
    SCOPED_TRACE(layout);
    const params p = complete({.layout = layout, .capacity = 3000, .target_fpr = 0.01});
    const auto filter = make_handle(filter_of(p, 2000));

    const filter_facts facts = filter->info(info_depth::bits);

    EXPECT_EQ(facts.fill->cells, p.geometry.bits);
    EXPECT_EQ(facts.fill->cells_set, ones_in(filter->local()->bytes()));
    EXPECT_NEAR(facts.fill->estimated_keys->value, 2000, 6 * facts.fill->estimated_keys->sigma);
    EXPECT_NEAR(static_cast<double>(facts.distinct_keys), 2000, 10);
    EXPECT_LE(*facts.insert_count, 2000u);
    EXPECT_NEAR(facts.fill->current_fpr / *facts.expected_fpr, 1, 0.2);
    EXPECT_TRUE(facts.consistency->count.conclusive);
    EXPECT_FALSE(facts.consistency->alarm || facts.count_is_estimate);
    const std::uint64_t most = facts.distinct_keys + *facts.keys_left;
    EXPECT_LE(expected_fpr(p, most), 0.01);
    EXPECT_GT(expected_fpr(p, most + 1), 0.01);
    EXPECT_FALSE(facts.file || facts.window || facts.counting || facts.quotient || facts.removals ||
                 facts.static_keys || facts.log || facts.shared);
  }
}

TEST_F(Facts, CountersAloneSayNothingOfBits) {
  const auto filter = make_handle(filter_of({.layout = "split_block512", .capacity = 1000, .target_fpr = 0.01}, 500));

  const filter_facts facts = filter->info(info_depth::counts);

  EXPECT_FALSE(facts.fill || facts.consistency || facts.keys_left);
  EXPECT_NEAR(static_cast<double>(facts.distinct_keys), 500, 2);
  EXPECT_EQ(*facts.expected_fpr, expected_fpr(facts.parameters, facts.distinct_keys));
}

TEST_F(Facts, AFilterBeyondItsTargetHasNoKeysLeft) {
  const auto filter = make_handle(filter_of({.layout = "classic", .capacity = 1000, .target_fpr = 0.01}, 2000));

  const filter_facts facts = filter->info(info_depth::bits);

  EXPECT_TRUE(judge_fpr(facts).is_broken());
  EXPECT_EQ(facts.keys_left, 0u);
}

TEST_F(Facts, ACountThatTheBitsContradictIsAnAlarm) {
  // Twice as many keys as the file's count says.
  const any_filter filter = filter_of({.layout = "split_block512", .capacity = 3000, .target_fpr = 0.01}, 3000);
  save_file(path("f"), filter.parameters(), filter.bytes(), {.inserted = 1500});

  const filter_facts facts = open_filter(path("f"))->info(info_depth::bits);

  EXPECT_TRUE(facts.consistency->alarm);
  EXPECT_GT(facts.consistency->count.deviation(), 6);
  EXPECT_NEAR(static_cast<double>(facts.distinct_keys), 3000, 200);  // by its bits
}

TEST_F(Facts, ACountingFilterCountsCountersAndRefusals) {
  any_filter filter(complete({.layout = "counting", .capacity = 200, .target_fpr = 0.01}));
  for (const std::string& key : keys(100)) filter.insert(key);
  for (int i = 0; i < 20; ++i) filter.insert("often");
  std::uint64_t refused = 0;
  for (const std::string& key : keys(300, "absent")) refused += filter.remove(key) == removal::not_found ? 1 : 0;
  std::uint64_t used = 0, full = 0;
  for (const std::uint8_t byte : filter.bytes()) {
    for (const int counter : {byte & 15, byte >> 4}) {
      used += counter != 0 ? 1 : 0;
      full += counter == 15 ? 1 : 0;
    }
  }

  const filter_facts facts = make_handle(std::move(filter))->info(info_depth::bits);

  ASSERT_GT(refused, 200u);
  ASSERT_GT(full, 0u);
  EXPECT_EQ(facts.counting->counters, facts.bits / 4);
  EXPECT_EQ(facts.counting->full, full);
  EXPECT_EQ(facts.removals->refused, refused);
  const double rate = std::max(0.01, facts.fill->current_fpr);
  EXPECT_NEAR(facts.removals->unnoticed, static_cast<double>(refused) * rate / (1 - rate), 1e-9);
  EXPECT_EQ(facts.fill->cells, facts.bits / 4);
  EXPECT_EQ(facts.fill->cells_set, used);
}

TEST_F(Facts, AFileReportsItsSizeNoteAndState) {
  filter_of({.capacity = 1000, .target_fpr = 0.01}, 10).save(path("f"), "a note");
  const auto clean = open_filter(path("f"))->info(info_depth::bits);
  const auto writer = open_filter(path("f"), {.mode = access::read_write});
  const auto dirty = open_filter(path("f"))->info(info_depth::bits);

  EXPECT_EQ(clean.file->bytes, std::filesystem::file_size(path("f")));
  EXPECT_EQ(clean.file->metadata, "a note");
  EXPECT_TRUE(clean.file->clean && !clean.count_is_estimate);
  EXPECT_FALSE(dirty.file->clean);
  EXPECT_TRUE(dirty.count_is_estimate);
  EXPECT_NEAR(static_cast<double>(dirty.distinct_keys), 10, 1);
}

TEST_F(Facts, AKeyedFileReportsItsFactsWithoutItsSecret) {
  const secret_key secret = random_secret();
  filter_of({.capacity = 1000, .target_fpr = 0.01, .secret = secret}, 100).save(path("f"));
  const auto facts_only = open_filter(path("f"), {.facts_only = true});
  const auto with_secret = open_filter(path("f"), {.secret = secret, .facts_only = true});

  const filter_facts facts = facts_only->info(info_depth::bits);

  EXPECT_EQ(facts.parameters, with_secret->info(info_depth::bits).parameters);
  EXPECT_FALSE(facts.parameters.secret);
  EXPECT_EQ(facts.fill->cells_set, ones_in(with_secret->local()->bytes()));
  EXPECT_FALSE(facts_only->capabilities().can_look_up);
  EXPECT_TRUE(with_secret->capabilities().can_look_up && with_secret->contains("key7"));
  EXPECT_EQ(code_of([&] { facts_only->contains("key7"); }), errc::incompatible);
  EXPECT_EQ(code_of([&] {
              std::uint64_t answers = 0;
              facts_only->contains(keys(1), std::span(&answers, 1));
            }),
            errc::incompatible);
  EXPECT_EQ(code_of([&] { measure_rate(*facts_only, 100'000, 0, 3); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { open_filter(path("f")); }), errc::incompatible);
  EXPECT_EQ(code_of([&] { open_filter(path("f"), {.mode = access::read_write, .facts_only = true}); }),
            errc::incompatible);
  EXPECT_EQ(code_of([&] { open_filter(path("f"), {.secret = random_secret(), .facts_only = true}); }),
            errc::incompatible);
}

TEST_F(Facts, ARebuildingFilterReportsItsLog) {
  const std::string name = make_rebuilding(5000);
  open_filter(name, {.mode = access::read_write})->insert(keys(1000));  // again

  const log_facts log = *open_filter(name)->info(info_depth::everything).log;

  EXPECT_EQ(log.path, name + ".log");
  EXPECT_EQ(log.keys, 6000u);
  EXPECT_EQ(log.bytes, std::filesystem::file_size(name + ".log"));
  EXPECT_GT(log.bytes_while_growing, 2 * open_filter(name)->local()->byte_size());
  EXPECT_TRUE(log.is_open && log.was_read && !log.has_torn_record);
  EXPECT_EQ(log.problem, log_problem::none);
  EXPECT_EQ(open_filter(name, {.mode = access::read_write})->info(info_depth::counts).log->keys, 6000u);
}

TEST_F(Facts, ALogThatCannotServeIsAProblem) {
  const std::string name = make_rebuilding(5000);
  const bytes whole = read_file(name + ".log");
  const auto problem_at = [&](info_depth depth) { return open_filter(name)->info(depth).log->problem; };

  bytes flipped = whole;
  flipped[1000] ^= 1;
  write_file(name + ".log", flipped);
  EXPECT_EQ(problem_at(info_depth::bits), log_problem::none);
  EXPECT_EQ(problem_at(info_depth::everything), log_problem::damaged);

  write_file(name + ".log", bytes(whole.begin(), whole.end() - 50));
  EXPECT_EQ(problem_at(info_depth::bits), log_problem::incomplete);

  write_file(name + ".log", std::string("no log"));
  EXPECT_EQ(problem_at(info_depth::bits), log_problem::unreadable);

  rebuilding_filter::create(path("other"), {.target_fpr = 0.01}).close();
  std::filesystem::rename(path("other.log"), name + ".log");
  EXPECT_EQ(problem_at(info_depth::counts), log_problem::of_another_filter);

  std::filesystem::remove(name + ".log");
  EXPECT_EQ(problem_at(info_depth::counts), log_problem::missing);
}

TEST_F(Facts, AStaticFilterKnowsItsKeysExactly) {
  std::vector<std::uint64_t> hash64s;
  for (std::uint64_t i = 0; i < 5000; ++i) hash64s.push_back(mix{}(i).hash64);
  const static_bytes sealed = fuse_build(hash64s, 16);
  save_file(path("f"), static_params({.hash = "mix", .keys = key_kind::u64le}, 16, sealed),
            {sealed.payload.data(), sealed.payload.size()}, {.inserted = sealed.keys});

  const filter_facts facts = open_filter(path("f"))->info(info_depth::bits);

  EXPECT_EQ(facts.static_keys->keys, 5000u);
  EXPECT_EQ(facts.static_keys->fingerprint_bits, 16u);
  EXPECT_EQ(facts.insert_count, 5000u);
  EXPECT_EQ(facts.keys_left, 0u);
  EXPECT_NEAR(facts.fill->current_fpr, 1.0 / 65536, 1e-9);
  EXPECT_EQ(facts.fill->current_fpr, *facts.expected_fpr);
  EXPECT_EQ(facts.fill->cells, 0u);
}

TEST_F(Facts, ASlidingWindowFilterReportsItsGenerations) {
  const auto filter =
      make_handle(any_filter(complete({.layout = "sliding", .target_fpr = 0.01, .extra = window_of_keys(700)})));
  filter->insert(keys(1000));

  const filter_facts facts = filter->info(info_depth::bits);

  EXPECT_EQ(facts.window->insertions, 1000u);
  EXPECT_EQ(facts.distinct_keys, facts.window->keys_held());
  EXPECT_NEAR(static_cast<double>(facts.distinct_keys), 800, 10);
  EXPECT_GT(facts.fill->fill_ratio(), 0);
  EXPECT_LT(facts.fill->fill_ratio(), 1);
  EXPECT_FALSE(facts.keys_left || facts.fill->estimated_keys || facts.consistency->alarm);
}

TEST_F(Facts, AScalableFilterReportsItsLayers) {
  const auto filter = make_scalable_handle({.capacity = 1000, .target_fpr = 0.01});
  filter->insert(keys(10'000));

  const filter_facts facts = filter->info(info_depth::bits);

  ASSERT_GT(facts.layers.size(), 2u);
  std::uint64_t keys_in = 0, cells = 0, ones = 0;
  for (const layer_facts& layer : facts.layers) {
    keys_in += layer.insert_count;
    cells += layer.geometry.bits;
    ones += *layer.cells_set;
  }
  EXPECT_EQ(facts.layers.front().capacity, 1000u);
  EXPECT_EQ(facts.parameters.geometry, facts.layers.front().geometry);
  EXPECT_EQ(facts.insert_count, keys_in);
  EXPECT_EQ(facts.bits, cells);
  EXPECT_EQ(facts.fill->cells_set, ones);
  EXPECT_LT(facts.fill->current_fpr, 0.01);
  EXPECT_NEAR(static_cast<double>(*facts.insert_count), 10'000, 100);
  const double lost = 10'000 - static_cast<double>(*facts.insert_count);
  EXPECT_NEAR(lost, *facts.expected_losses, 5 * std::sqrt(*facts.expected_losses));
  EXPECT_GT(lost, 0);
}

TEST_F(Facts, AHandleIsMeasuredWithTheSameKeys) {
  for (const key_kind kind : {key_kind::bytes, key_kind::u64le}) {
    any_filter filter(complete({.keys = kind, .capacity = 1000, .target_fpr = 0.05}));
    for (std::uint64_t i = 0; i < 1000; ++i) {
      if (kind == key_kind::bytes)
        filter.insert(std::to_string(i));
      else
        filter.insert(i);
    }
    const measured_rate expected = measure_rate(filter, 50'000, 7, 2);
    const measured_rate found = measure_rate(*make_handle(std::move(filter)), 50'000, 7, 3);

    EXPECT_GT(expected.hits, 1000u);
    EXPECT_EQ(found.hits, expected.hits);
    EXPECT_EQ(found.queries, 50'000u);
  }
}

}  // namespace
}  // namespace bloomery_tests
