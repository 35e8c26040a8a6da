// function_ref and callback: empty values, ownership of the callable, and independent copies.
#include <bloomery/detail/function_ref.hpp>

#include "support/test.hpp"

namespace bloomery {
namespace {

int twice(int x) { return 2 * x; }

TEST(Callback, CallsLambdasFunctionsAndStdFunctions) {
  const std::string prefix = "x";
  const callback<std::string(const std::string&)> lambda = [&](const std::string& s) { return prefix + s; };
  const callback<int(int)> function = twice;
  const callback<int(int)> standard = std::function<int(int)>([](int x) { return x + 1; });

  EXPECT_EQ(lambda("y"), "xy");
  EXPECT_EQ(function(21), 42);
  EXPECT_EQ(standard(41), 42);
}

TEST(Callback, DropsAResultThatIsNotWanted) {
  int calls = 0;
  const auto count = [&] { return ++calls; };

  callback<void()>{count}();
  function_ref<void()>{count}();

  EXPECT_EQ(calls, 2);
}

TEST(Callback, IsEmptyIfMadeOfAnEmptyCallable) {
  int (*const no_function)(int) = nullptr;

  EXPECT_FALSE(callback<int(int)>());
  EXPECT_FALSE(callback<int(int)>(no_function));
  EXPECT_FALSE(callback<int(int)>(std::function<int(int)>()));
  EXPECT_FALSE(callback<int(int)>(function_ref<int(int)>()));
  EXPECT_FALSE(callback<long(int)>(callback<int(int)>()));
  EXPECT_FALSE(function_ref<int(int)>(callback<int(int)>()));
  EXPECT_TRUE(callback<int(int)>(twice));
  EXPECT_TRUE(function_ref<int(int)>(callback<int(int)>(twice)));
}

TEST(Callback, OwnsItsCallableUntilTheLastCopyIsGone) {
  auto owned = std::make_shared<int>(7);
  const std::weak_ptr<int> watched = owned;
  {
    callback<int()> copy;
    {
      const callback<int()> first = [owned = std::move(owned)] { return *owned; };
      copy = first;
    }
    EXPECT_EQ(copy(), 7);
    callback<int()> moved = std::move(copy);
    EXPECT_FALSE(copy);  // NOLINT(bugprone-use-after-move): empty, by contract
    EXPECT_EQ(moved(), 7);
    moved = *&moved;  // assignment to itself
    EXPECT_EQ(moved(), 7);
  }

  EXPECT_TRUE(watched.expired());
}

TEST(Callback, HasCopiesThatDoNotShareState) {
  const callback<int()> first = [calls = 0]() mutable { return ++calls; };
  first();
  const callback<int()> copy = first;

  EXPECT_EQ(first(), 2);
  EXPECT_EQ(first(), 3);
  EXPECT_EQ(copy(), 2);
}

}  // namespace
}  // namespace bloomery
