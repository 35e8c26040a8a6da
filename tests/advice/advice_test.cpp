// The advice of advise(): the sizes of complete() and of real filters, the rule of choice for random requirements,
// memory limits that are exact to the byte, named contradictions, and sentences that hold.
#include <bloomery/advice.hpp>
#include <bloomery/any_filter.hpp>
#include <bloomery/cascade_builder.hpp>
#include <bloomery/detail/cascade.hpp>
#include <bloomery/detail/fuse.hpp>
#include <bloomery/detail/scalable_layers.hpp>
#include <bloomery/hash.hpp>
#include <bloomery/layouts/classic.hpp>
#include <bloomery/layouts/split_block512.hpp>
#include <bloomery/sizing.hpp>

#include "app/advice_text.hpp"
#include "support/test.hpp"

#include <chrono>
#include <functional>
#include <random>
#include <regex>

namespace bloomery {
namespace {

using namespace bloomery_tests;
using ::testing::Not;

const option* find(const advice& a, structure s) {
  if (a.taken.take == s) return &a.taken;
  const auto found =
      std::find_if(a.passed_over.begin(), a.passed_over.end(), [&](const option& o) { return o.take == s; });
  return found == a.passed_over.end() ? nullptr : &*found;
}

const option* find_change(const advice& a, what_if what) {
  const auto found = std::find_if(a.changes.begin(), a.changes.end(), [&](const change& c) { return c.what == what; });
  return found == a.changes.end() ? nullptr : &found->then;
}

error refusal(const requirements& wanted) {
  try {
    const advice a = advise(wanted);
    ADD_FAILURE() << "took " << name_of(a.taken.take);
  } catch (const error& e) {
    return e;
  }
  return error(errc::io, {});
}

double bits_per_key(const params& p, std::uint64_t keys) {
  return static_cast<double>(p.geometry.bits) / static_cast<double>(keys);
}

TEST(Advice, AgreesWithCompleteIfOnlyKeysAndRateAreGiven) {
  for (const preference prefer : {preference::speed, preference::memory}) {
    for (const double rate : {0.2, 0.01, 1e-3, 1e-4, 1e-6}) {
      for (const std::uint64_t keys : {1u, 100u, 10'000u, 1'000'000u}) {
        SCOPED_TRACE(testing::Message() << keys << " keys at " << rate);
        const params expected = complete({.capacity = keys, .target_fpr = rate}, prefer);

        const option taken = advise({.keys = keys, .rate = rate, .prefer = prefer}).taken;

        EXPECT_EQ(taken.take, structure::plain);
        EXPECT_EQ(taken.parameters, expected);
        EXPECT_EQ(taken.bytes, bytes_for(expected.geometry.bits));
        EXPECT_DOUBLE_EQ(taken.bits_per_key, bits_per_key(expected, keys));
        EXPECT_EQ(taken.worst_bits_per_key, taken.bits_per_key);
        EXPECT_NEAR(taken.rate / expected_fpr(expected, keys), 1, 1e-9);
        EXPECT_EQ(any_filter(taken.parameters).byte_size(), taken.bytes);
      }
    }
  }
}

TEST(Advice, TakesIntegersAsSuch) {
  EXPECT_EQ(advise({.keys = 1000, .kind = key_kind::u64le}).taken.parameters,
            complete({.keys = key_kind::u64le, .capacity = 1000, .target_fpr = 0.01}));
}

TEST(Advice, GivesTheNumberOfCacheLinesPerLookup) {
  EXPECT_EQ(advise({.keys = 1'000'000, .rate = 0.01}).taken.lines, 1u);
  const option page = advise({.keys = 1'000'000, .rate = 1e-6}).taken;
  ASSERT_EQ(page.parameters.layout, "blocked_page");
  EXPECT_EQ(page.lines, page.parameters.geometry.probes);
}

TEST(Advice, TakesFingerprintsIfKeysAreTakenOut) {
  for (const double rate : {0.1, 0.01, 1e-4}) {
    const advice a = advise({.keys = 1'000'000, .rate = rate, .deletes = true});
    const params expected = complete({.layout = "quotient", .capacity = 1'000'000, .target_fpr = rate});

    EXPECT_EQ(a.taken.take, structure::quotient);
    EXPECT_EQ(a.taken.parameters, expected);
    EXPECT_EQ(a.taken.lines, 2u);
    EXPECT_LE(a.taken.rate, rate);
    EXPECT_THAT(a.cautions, ElementsAre(caution::remove_only_inserted, caution::room_for_copies));
    const option* without = find_change(a, what_if::without_deletes);
    ASSERT_NE(without, nullptr);
    EXPECT_DOUBLE_EQ(without->bits_per_key,
                     bits_per_key(complete({.capacity = 1'000'000, .target_fpr = rate}), 1'000'000));
  }
  EXPECT_NEAR(advise({.keys = 1'000'000, .rate = 0.01, .deletes = true}).taken.bits_per_key, 10.45, 0.01);
}

TEST(Advice, SealsOnlyWhereThatTakesFewerBits) {
  for (const preference prefer : {preference::speed, preference::memory}) {
    for (const double rate :
         {0.9, 0.7, 0.5, 0.3, 0.1, 0.05, 0.02, 0.01, 0.004, 0.0039, 1e-3, 2e-4, 1e-4, 2e-5, 1e-5, 1e-6, 1e-9}) {
      SCOPED_TRACE(rate);
      const std::uint64_t keys = 1'000'000;
      const params plain = complete({.capacity = keys, .target_fpr = rate}, prefer);
      const auto sealed_in = [&](static_structure structure, unsigned width) {
        return complete({.layout = std::string(static_layout_name(structure, width)),
                         .geometry = static_geometry(structure, width, keys),
                         .capacity = keys});
      };
      unsigned width = 1;
      const double most_rate = rate * (1 + 1e-6);  // a target of 2^-w needs w bits, in spite of collisions of hashes
      while (expected_fpr(sealed_in(static_structure::fuse, width), keys) > most_rate) ++width;
      params expected = sealed_in(static_structure::ribbon, width);
      const std::uint64_t most = most_bits(expected.geometry.bits, prefer);
      const unsigned whole = width <= 8 ? 8 : width <= 16 ? 16 : 32;
      for (const unsigned faster : {width, whole}) {
        const params p = sealed_in(static_structure::fuse, faster);
        if (p.geometry.bits <= most) expected = p;
      }

      const option taken = advise({.keys = keys, .rate = rate, .sealed = true, .prefer = prefer}).taken;

      EXPECT_LE(taken.rate, most_rate);
      EXPECT_EQ(taken.parameters, expected.geometry.bits < plain.geometry.bits ? expected : plain);
    }
  }
  const auto taken = [](double rate, preference prefer) {
    return advise({.keys = 10'000'000, .rate = rate, .sealed = true, .prefer = prefer}).taken;
  };
  const option quick = taken(0.004, preference::speed);
  EXPECT_EQ(quick.parameters.layout, "fuse8");
  EXPECT_NEAR(quick.bits_per_key, 9.02, 0.02);
  EXPECT_NEAR(quick.rate, 1.0 / 256, 1e-6);
  EXPECT_EQ(quick.lines, 3u);
  EXPECT_EQ(taken(0.001, preference::speed).parameters.layout, "fuse10");
  EXPECT_LT(taken(0.001, preference::speed).bits_per_key, 11.3);
  const option small = taken(0.001, preference::memory);
  EXPECT_EQ(small.parameters.layout, "ribbon10");
  EXPECT_LT(small.bits_per_key, 10.3);
  EXPECT_EQ(small.lines, 5u);
}

TEST(Advice, TakesTheSmallestFilterOfTwoLists) {
  constexpr std::uint64_t keys = 20'000, absent = 900'000;
  std::mt19937_64 random(11);
  std::vector<std::uint64_t> present(keys), other(absent);
  std::generate(present.begin(), present.end(), std::ref(random));
  std::generate(other.begin(), other.end(), std::ref(random));
  const auto bytes_of_width = [&](unsigned width) {
    cascade_builder builder(present, width);
    builder.append_absent(other);
    return bytes_for(builder.build({}).geometry.bits);
  };
  for (const double rate : {0.9, 0.01, 1e-4}) {
    const advice a = advise({.keys = keys, .rate = rate, .never_for = absent});

    const option& taken = a.taken;
    EXPECT_EQ(taken.take, structure::static_set);
    EXPECT_EQ(taken.why, ground::reports_no_absent);
    EXPECT_LE(taken.rate, rate);
    const unsigned width = find_layout_facts(taken.parameters.layout)->fingerprint_bits;
    EXPECT_EQ(taken.parameters.layout, cascade_layout_name(width));
    EXPECT_NEAR(static_cast<double>(taken.bytes), static_cast<double>(bytes_of_width(width)),
                0.01 * static_cast<double>(taken.bytes));
    // A shorter fingerprint is larger in total, or reports too many other keys; a longer one is larger.
    EXPECT_TRUE(cascade_rate(width - 1, keys) > rate || bytes_of_width(width - 1) > taken.bytes);
    EXPECT_GT(bytes_of_width(width + 1), taken.bytes);
    const double bound = std::max(lower_bound_bits_per_key(keys, absent), lower_bound_bits_per_key(taken.rate));
    EXPECT_EQ(taken.lower_bound_bits_per_key, bound);
    EXPECT_GT(taken.bits_per_key, bound);
    EXPECT_EQ(a.passed_over.size(), 6u);
    for (const option& passed : a.passed_over)
      EXPECT_TRUE(passed.why == ground::reports_absent || passed.why == ground::cannot_remove ||
                  passed.why == ground::forgets_keys || passed.why == ground::refuses_keys ||
                  passed.why == ground::needs_log)
          << name_of(passed.take);
    EXPECT_EQ(a.changes.front().what, what_if::absent_reported);
    EXPECT_EQ(a.changes.front().then.parameters, advise({.keys = keys, .rate = rate, .sealed = true}).taken.parameters);
  }
}

TEST(Advice, GivesTheReasonAgainstAStaticFilter) {
  const auto why = [](double rate) { return advise({.keys = 1'000'000, .rate = rate, .sealed = true}).taken.why; };
  EXPECT_EQ(why(1e-18), ground::no_such_fingerprint);
  EXPECT_EQ(why(1e-10), ground::no_such_fingerprint);
  EXPECT_EQ(why(0.7), ground::static_not_smaller);
  EXPECT_EQ(why(0.1), ground::static_is_smaller);
  EXPECT_EQ(why(0.01), ground::static_is_smaller);
}

TEST(Advice, TakesTheWindowThatTheRuleForLayoutsTakes) {
  for (const preference prefer : {preference::speed, preference::memory}) {
    for (const double rate : {0.1, 0.01, 1e-3}) {
      const auto of_window = [&](const char* layout, const window_length& window) {
        return complete({.layout = layout, .capacity = 100'000, .target_fpr = rate, .extra = window});
      };
      const auto expected = [&](const window_length& window) {
        std::vector<candidate> both;
        for (const char* layout : {"sliding64", "sliding"}) {
          candidate c{layout};
          c.geometry = of_window(layout, window).geometry;
          both.push_back(c);
        }
        judge(both, prefer);
        return of_window(both[0].chosen ? "sliding64" : "sliding", window);
      };
      const window_length last = window_of_keys(100'000);
      const window_length day = window_of_time(std::chrono::hours(24));

      const advice by_keys = advise({.rate = rate, .window = last, .prefer = prefer});
      const advice by_time = advise({.keys = 100'000, .rate = rate, .window = day, .prefer = prefer});

      EXPECT_EQ(by_keys.taken.take, structure::sliding_window);
      EXPECT_EQ(by_keys.taken.parameters, expected(last));
      EXPECT_EQ(by_time.taken.parameters, expected(day));
      EXPECT_LE(by_keys.taken.rate, rate);
      EXPECT_LE(by_time.taken.rate, rate);
      EXPECT_GT(by_time.taken.bytes, 3 * by_keys.taken.bytes);  // all keys may come in one slice
    }
  }
}

// Grows real layers and looks at their bytes after each key.
TEST(Advice, PredictsTheMemoryAndTheLayersOfAGrowingFilter) {
  const double rate = 0.01;
  scalable_layers real(rate);
  double worst = 0;
  std::mt19937_64 random(1);
  std::uint64_t in = 0;
  for (const std::uint64_t keys : {1'000u, 65'000u, 66'500u, 130'000u, 132'500u, 300'000u}) {
    for (; in < keys; ++in) {
      real.insert(key_hash{random(), 0});
      if (in + 1 >= 65'536) {
        worst = std::max(worst, 8.0 * static_cast<double>(real.byte_size()) / static_cast<double>(in + 1));
      }
    }

    const option o = advise({.keys = keys, .rate = rate, .grows = true}).taken;

    EXPECT_EQ(o.take, structure::scalable);
    EXPECT_EQ(o.bytes, real.byte_size()) << keys;
    EXPECT_EQ(o.lines, real.layers().size()) << keys;
    EXPECT_NEAR(o.rate / real.expected_fpr(), 1, 0.02) << keys;
  }
  // The first layer is full a little after 65,536 keys, because some keys are false positives.
  const option from_first_layer_on = advise({.keys = 65'536, .most_keys = 300'000, .rate = rate}).taken;
  EXPECT_NEAR(from_first_layer_on.worst_bits_per_key / worst, 1, 0.01);
}

TEST(Advice, GivesTheWorstCaseOfGrowingIfTheNumberIsUnknown) {
  const option o = advise({.rate = 0.01}).taken;

  EXPECT_EQ(o.for_keys, assumed_keys);
  EXPECT_NEAR(o.bits_per_key, 16.49, 0.02);
  EXPECT_LE(o.worst_bits_per_key, 33);
  EXPECT_LE(o.rate, 0.01);
}

TEST(Advice, TakesALogIfItMay) {
  const advice with = advise({.rate = 0.01, .log = true});
  const advice without = advise({.rate = 0.01});

  EXPECT_EQ(with.taken.take, structure::rebuilding);
  EXPECT_LE(with.taken.bits_per_key, 13);
  EXPECT_LE(with.taken.worst_bits_per_key, 23);
  EXPECT_EQ(with.taken.lines, 1u);
  EXPECT_GE(with.taken.disk_bytes, 8 * assumed_keys);
  const option* log = find_change(without, what_if::with_log);
  ASSERT_NE(log, nullptr);
  EXPECT_EQ(log->bits_per_key, with.taken.bits_per_key);
  EXPECT_EQ(log->worst_bits_per_key, with.taken.worst_bits_per_key);
  EXPECT_EQ(find(without, structure::rebuilding)->why, ground::needs_log);
}

TEST(Advice, TakesAFixedSizeForARangeUnlessGrowingTakesLessAtWorst) {
  const std::uint64_t most = 10'000'000;
  const double fixed = bits_per_key(complete({.capacity = most, .target_fpr = 0.01}), most);
  for (const double ratio : {1.0, 1.5, 2.0, 2.5, 3.0, 3.2, 4.0, 10.0, 100.0}) {
    SCOPED_TRACE(ratio);
    const auto fewest = static_cast<std::uint64_t>(static_cast<double>(most) / ratio);

    const advice a = advise({.keys = fewest, .most_keys = most, .rate = 0.01});
    const advice with_log = advise({.keys = fewest, .most_keys = most, .rate = 0.01, .log = true});

    const double at_fewest = static_cast<double>(most) / static_cast<double>(fewest) * fixed;
    const bool too_wide = at_fewest > find(a, structure::scalable)->worst_bits_per_key;
    EXPECT_EQ(a.taken.take, too_wide ? structure::scalable : structure::plain);
    EXPECT_EQ(too_wide, ratio > 3.1);
    const bool too_wide_for_log = at_fewest > find(with_log, structure::rebuilding)->worst_bits_per_key;
    EXPECT_EQ(with_log.taken.take, too_wide_for_log ? structure::rebuilding : structure::plain);
    EXPECT_EQ(a.taken.for_keys, most);
  }
  EXPECT_EQ(advise({.most_keys = 1000}).taken.parameters, advise({.keys = 1000}).taken.parameters);
}

// ---- limits ---------------------------------------------------------------------------------------------------------

TEST(Advice, GoesToSmallerLayoutsAsMemoryRunsOut) {
  const std::uint64_t keys = 1'000'000;
  std::vector<std::string> taken;
  for (const candidate& c : layout_candidates(keys, 0.01)) {
    const std::uint64_t limit = bytes_for(c.geometry.bits);
    const option o = advise({.keys = keys, .rate = 0.01, .memory_bytes = limit}).taken;
    EXPECT_LE(o.bytes, limit);
    EXPECT_EQ(o.parameters.geometry, c.geometry);
    taken.push_back(o.parameters.layout);
  }
  EXPECT_EQ(taken, (std::vector<std::string>{"split_block", "split_block512", "blocked", "blocked_page", "classic"}));
}

TEST(Advice, SaysOfTooLittleMemoryWhatIsPossibleAndWhatWouldHaveToGive) {
  const std::uint64_t keys = 1'000'000;
  const std::uint64_t least = bytes_for(layouts::classic::bits_for(keys, 0.01));

  EXPECT_EQ(advise({.keys = keys, .rate = 0.01, .memory_bytes = least}).taken.bytes, least);
  for (const std::uint64_t limit : {least - 1, std::uint64_t{1} << 19}) {
    const error refused = refusal({.keys = keys, .rate = 0.01, .memory_bytes = limit});

    EXPECT_EQ(refused.code(), errc::too_large);
    EXPECT_THAT(refused.text().expected, HasSubstr("1.14 MiB (plain classic)"));
    std::smatch offered;
    const std::string offers = refused.text().hint.words();
    ASSERT_TRUE(std::regex_search(offers, offered,
                                  std::regex("a false-positive rate of ([0-9.]+)%, or with at most ([0-9,]+) keys")))
        << offers;
    const double rate = std::stod(offered[1]) / 100;
    std::string fewer = offered[2];
    std::erase(fewer, ',');
    const std::uint64_t most = std::stoull(fewer);
    EXPECT_LE(advise({.keys = keys, .rate = rate, .memory_bytes = limit}).taken.bytes, limit);
    EXPECT_LE(advise({.keys = most, .rate = 0.01, .memory_bytes = limit}).taken.bytes, limit);
    // Nor is it far from what is possible.
    EXPECT_GT(bytes_for(layouts::classic::bits_for(keys, rate * 0.9)), limit);
    EXPECT_GT(bytes_for(layouts::classic::bits_for(most + most / 50, 0.01)), limit);
  }
}

TEST(Advice, OffersToDropWhatTakesTheMemory) {
  const error deletes = refusal({.keys = 1'000'000, .rate = 1e-4, .deletes = true, .memory_bytes = 2'420'000});
  const error growth = refusal({.rate = 0.01, .memory_bytes = 64 << 10});

  EXPECT_THAT(deletes.text().hint.words(), HasSubstr("without deletes"));
  EXPECT_THAT(deletes.text().expected, HasSubstr("quotient13"));
  EXPECT_THAT(growth.text().hint.words(), HasSubstr("with a log on disk"));
}

TEST(Advice, OffersNoNumberOfKeysThatItDoesNotName) {
  const error unbounded = refusal({.rate = 0.01, .grows = true, .memory_bytes = 1 << 10});
  const error from_some = refusal({.keys = 100'000, .rate = 0.01, .grows = true, .memory_bytes = 130 << 10});

  EXPECT_THAT(unbounded.text().hint.words(), testing::Not(HasSubstr("keys")));
  EXPECT_THAT(from_some.text().hint.words(), HasSubstr("if the number of keys does not grow"));
}

TEST(Advice, GivesTheNumberOfKeysThatFitIfTheyMayGrow) {
  for (const bool log : {false, true}) {
    const std::uint64_t limit = 3 << 20;
    const advice a = advise({.rate = 0.01, .log = log, .memory_bytes = limit});

    ASSERT_GT(a.most_keys_in_memory, 0u);
    EXPECT_LE(a.taken.bytes, limit);
    const auto at = [&](std::uint64_t keys) {
      return advise({.keys = keys, .rate = 0.01, .grows = true, .log = log}).taken.bytes;
    };
    EXPECT_LE(at(a.most_keys_in_memory), limit);
    EXPECT_GT(at(a.most_keys_in_memory + a.most_keys_in_memory / 50 + 1), limit);
    EXPECT_EQ(a.cautions.back(), caution::memory_bounds_keys);
  }
}

TEST(Advice, GivesAReasonAgainstEachOtherKind) {
  const auto why = [](const requirements& r, structure s) {
    const advice a = advise(r);
    const option* o = find(a, s);
    return o == nullptr ? std::nullopt : std::optional(o->why);
  };
  EXPECT_EQ(why({.keys = 1000}, structure::sliding_window), ground::forgets_keys);
  EXPECT_EQ(why({.window = window_of_keys(1000)}, structure::plain), ground::keeps_all_keys);
  EXPECT_EQ(why({.keys = 1000, .deletes = true}, structure::plain), ground::cannot_remove);
  EXPECT_EQ(why({.keys = 1000}, structure::static_set), ground::keys_come_later);
  EXPECT_EQ(why({.rate = 0.01}, structure::plain), ground::needs_capacity);
  EXPECT_EQ(why({.keys = 1000}, structure::counting), ground::more_bits);
  EXPECT_EQ(why({.keys = 1000}, structure::quotient), ground::refuses_keys);
  EXPECT_EQ(why({.keys = 1'000'000, .deletes = true}, structure::counting), ground::more_bits);
  EXPECT_EQ(why({.keys = 1'000'000, .memory_bytes = 2 << 20}, structure::counting), ground::over_memory);
}

TEST(Advice, RefusesNumbersOutOfRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double rate : {0.0, 1.0, -0.5, 2.0, nan}) {
    EXPECT_EQ(refusal({.keys = 10, .rate = rate}).code(), errc::invalid_argument) << rate;
  }
  EXPECT_EQ(refusal({.keys = 10, .most_keys = 9}).code(), errc::invalid_argument);
  EXPECT_EQ(refusal({.keys = std::uint64_t{1} << 62, .rate = 1e-6}).code(), errc::too_large);
}

// ---- contradictions -------------------------------------------------------------------------------------------------

struct need {
  const char* name;  // as a contradiction names it
  void (*set)(requirements& r);
};

TEST(Advice, NamesBothSidesOfAContradictionAndTheWayOut) {
  const need sealed{"sealed", [](requirements& r) { r.sealed = true; }};
  const need absent{"known absent keys", [](requirements& r) { r.never_for = 9; }};
  const need deletes{"deletes", [](requirements& r) { r.deletes = true; }};
  const need growth{"unknown number", [](requirements& r) { r.grows = true; }};
  const need unknown{"unknown number", [](requirements& r) { r.keys = 0; }};
  const need range{"unknown number", [](requirements& r) { r.most_keys = 2 * r.keys; }};
  const need time{"a window", [](requirements& r) { r.window = window_of_time(std::chrono::seconds(1)); }};
  const need keys{"a window", [](requirements& r) { r.window = window_of_keys(1000), r.keys = 0; }};
  const need number{"a number of keys", [](requirements& r) { r.keys = 7; }};
  const need grows_with_window{"growth", [](requirements& r) { r.grows = true; }};
  const need bound{"a maximum number of keys", [](requirements& r) { r.most_keys = 2 * r.keys; }};
  const need growth_alone{"unlimited growth", [](requirements& r) { r.grows = true; }};
  const std::pair<need, need> contradictory[] = {
      {sealed, deletes},         {sealed, time},        {keys, sealed},
      {sealed, growth},          {sealed, unknown},     {sealed, range},
      {deletes, time},           {keys, deletes},       {deletes, growth},
      {deletes, unknown},        {keys, number},        {time, unknown},
      {time, grows_with_window}, {bound, growth_alone}, {keys, grows_with_window},
      {absent, deletes},         {absent, unknown}};
  for (const auto& [one, other] : contradictory) {
    requirements r{.keys = 1000};
    one.set(r);
    other.set(r);

    const error e = refusal(r);

    EXPECT_EQ(e.code(), errc::invalid_argument);
    EXPECT_THAT(e.text().what, HasSubstr(one.name));
    EXPECT_THAT(e.text().what, HasSubstr(other.name));
    EXPECT_THAT(e.text().hint.words(), Not(testing::IsEmpty())) << one.name << ", " << other.name;
  }
}

TEST(Advice, AgreesToWhatGoesTogether) {
  EXPECT_EQ(advise({.keys = 1000, .most_keys = 5000, .deletes = true}).taken.take, structure::quotient);
  EXPECT_EQ(advise({.keys = 1000, .most_keys = 5000, .deletes = true}).taken.for_keys, 5000u);
  EXPECT_EQ(advise({.keys = 1000, .sealed = true, .log = true}).taken.for_keys, 1000u);
  EXPECT_EQ(advise({.keys = 1000, .window = window_of_time(std::chrono::seconds(1)), .log = true}).taken.take,
            structure::sliding_window);
  EXPECT_EQ(advise({.keys = 1000, .most_keys = 2000, .window = window_of_time(std::chrono::seconds(1))}).taken.for_keys,
            2000u);
  EXPECT_EQ(advise({.keys = 1000, .rate = 0.01, .log = true}).taken.take, structure::plain);
}

// ---- others choose keys ---------------------------------------------------------------------------------------------

TEST(Advice, TakesSiphashAgainstAThreatAndWantsASecret) {
  for (const bool deletes : {false, true}) {
    const advice a = advise({.keys = 1000, .deletes = deletes, .threat = true});

    EXPECT_TRUE(a.needs_secret);
    params p = a.taken.parameters;
    EXPECT_EQ(p.hash, "siphash");
    p.secret = random_secret();
    any_filter made(complete(p));
    EXPECT_EQ(made.byte_size(), a.taken.bytes);
    made.insert("alice");
    EXPECT_TRUE(made.may_contain("alice"));
    const bool warned = std::count(a.cautions.begin(), a.cautions.end(), caution::removal_helps_attackers) == 1;
    EXPECT_EQ(warned, deletes);
  }
  EXPECT_FALSE(advise({.keys = 1000}).needs_secret);
  EXPECT_TRUE(advise({.keys = 1000}).cautions.empty());
}

// ---- random requirements --------------------------------------------------------------------------------------------

// Hundreds of random requirements: the chosen kind fulfils them, within the memory and the target FPR, with the fewest
// bits per key in the worst case; each other kind has a correct reason; the named changes do change the choice.
TEST(Advice, FollowsItsRuleForRandomRequirements) {
  std::mt19937_64 random(7);
  const auto one_in = [&](std::uint64_t n) { return random() % n == 0; };
  int given = 0;
  int contradictory = 0;
  int too_small = 0;
  for (int round = 0; round < 150; ++round) {
    requirements r;
    if (!one_in(4)) r.keys = 1 + random() % 1'000'000;
    if (one_in(4)) r.most_keys = r.keys + random() % 3'000'000;
    r.rate = std::pow(10.0, -1 - static_cast<double>(random() % 300) / 100);
    r.grows = one_in(6);
    r.deletes = one_in(4);
    r.sealed = one_in(4);
    if (one_in(8)) r.never_for = 1 + random() % 10'000'000;
    if (one_in(6)) r.window = window_of_milliseconds(1 + random() % 1'000'000);
    if (one_in(8)) r.window = window_of_keys(1 + random() % 1'000'000);
    r.log = one_in(2);
    if (one_in(3)) r.memory_bytes = 1000 + random() % 4'000'000;
    r.threat = one_in(3);
    if (one_in(2)) r.prefer = preference::memory;
    SCOPED_TRACE(testing::Message() << "round " << round);
    try {
      const advice a = advise(r);

      ++given;
      const option& t = a.taken;
      ASSERT_TRUE(t.possible());
      EXPECT_LE(t.rate, r.rate);
      EXPECT_TRUE(r.memory_bytes == 0 || t.bytes <= r.memory_bytes);
      EXPECT_EQ(r.deletes, t.take == structure::counting || t.take == structure::quotient);
      EXPECT_EQ(r.window.count != 0, t.take == structure::sliding_window);
      EXPECT_TRUE(t.take != structure::static_set || r.sealed || r.never_for != 0);
      EXPECT_EQ(r.never_for != 0, t.parameters.layout.starts_with("cascade"));
      EXPECT_TRUE(t.take != structure::rebuilding || r.log);
      EXPECT_GE(t.why, ground::number_known);
      EXPECT_THAT(app::taken_reason(r, a), HasSubstr(". "));
      EXPECT_EQ(a.passed_over.size(), 6u);
      for (const option& o : a.passed_over) {
        EXPECT_LE(o.why, ground::less_simple);
        EXPECT_EQ(o.possible(), o.why >= ground::over_memory);
        EXPECT_EQ(o.problem.has_value(), o.why == ground::cannot_keep_rate);
        EXPECT_FALSE(app::passed_reason(r, a, o).empty());
        if (o.possible() && (r.memory_bytes == 0 || o.bytes <= r.memory_bytes)) {
          EXPECT_GE(o.worst_bits_per_key, t.worst_bits_per_key);
        }
      }
      for (const change& c : a.changes) {
        EXPECT_THAT(app::change_text(r, a, c),
                    testing::StartsWith(app::phrase_of(r, c.what) + ": " + name_of(c.then.take)));
        EXPECT_GT(c.then.bits_per_key, 0);
      }
      EXPECT_EQ(r.threat, a.needs_secret);
    } catch (const error& e) {
      (e.code() == errc::invalid_argument ? contradictory : too_small) += 1;
      EXPECT_TRUE(e.code() == errc::invalid_argument || e.code() == errc::too_large) << e.what();
      EXPECT_FALSE(e.text().hint.empty()) << e.what();
    }
  }
  EXPECT_GT(given, 30);
  EXPECT_GT(contradictory, 30);
  EXPECT_GT(too_small, 3);
}

}  // namespace
}  // namespace bloomery
