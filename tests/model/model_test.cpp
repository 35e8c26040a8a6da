// The model of every kind of filter without a server: random operations, compared with an exact set after each.
//
// Read operation.hpp for the operations, trial.hpp for the comparisons, and kinds_*.cpp for the promises of each kind.
#include "model/run.hpp"

#include <vector>

namespace bloomery_model {
namespace {

std::vector<kind> all_kinds() {
  std::vector<kind> all;
  for (const auto& some : {plain_kinds(), growing_kinds(), window_kinds(), counting_kinds(), static_kinds()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

class Model : public testing::TestWithParam<kind> {};

TEST_P(Model, HoldsAfterEveryOperation) {
  EXPECT_TRUE(holds(GetParam(), bloomery_tests::repetitions<std::uint64_t>(6, 3, 1000),
                    bloomery_tests::under_sanitizer ? 24 : 40));
}

INSTANTIATE_TEST_SUITE_P(Every, Model, testing::ValuesIn(all_kinds()),
                         [](const auto& one) { return one.param.promises.name; });

// ---- the model's own parts ------------------------------------------------------------------------------------------

TEST(ModelShrinking, FindsTheShortestSequenceThatFails) {
  const auto fails = [](const std::vector<int>& numbers) {
    return std::count_if(numbers.begin(), numbers.end(), [](int i) { return i > 9; }) >= 2;
  };
  const auto simpler_number = [](int i) { return std::vector<int>{i / 2, i - 1}; };

  const std::vector<int> found =
      shrunk(std::vector<int>{3, 40, 7, 12, 99, 5, 0, 64}, fails, simpler_number, std::chrono::seconds(10));

  EXPECT_EQ(found, (std::vector<int>{10, 10}));
}

TEST(ModelOperations, AreReadBackAsTheyArePrinted) {
  std::mt19937_64 random(3);
  contract c;
  c.able.can_remove = true;
  c.also = {verb::kill, verb::rebuild};
  std::vector<operation> operations;
  std::ostringstream text;
  for (int i = 0; i < 200; ++i) {
    operations.push_back(drawn(random, c));
    text << "  " << operations.back() << '\n';
  }

  EXPECT_EQ(operations_of(text.str()), operations);
}

TEST(ModelStatistics, TheTailOfABinomialIsExact) {
  EXPECT_NEAR(binomial_tail(2, 3, 0.5), 0.5, 1e-12);
  EXPECT_NEAR(binomial_tail(10, 10, 0.1), 1e-10, 1e-20);
  EXPECT_NEAR(binomial_tail(1, 1000, 0.001), 1 - std::pow(0.999, 1000), 1e-12);
  EXPECT_EQ(binomial_tail(0, 5, 0.3), 1);
  EXPECT_NEAR(binomial_head(1, 3, 0.5), 0.5, 1e-12);
  EXPECT_EQ(binomial_head(5, 5, 1), 1);
}

}  // namespace
}  // namespace bloomery_model
