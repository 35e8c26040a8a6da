// A program without exceptions and run-time types: in-memory filters, and errors as values. Exits with 0 if all is as
// expected. With the argument "fail" it makes an impossible filter, which ends the program.
#include <bloomery/concurrent_filter.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/result.hpp>
#include <bloomery/scalable_filter.hpp>
#include <bloomery/sliding_window_filter.hpp>
#include <bloomery/static_filter.hpp>

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

using namespace bloomery;

namespace {

int failures = 0;

void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "expected: %s\n", what);
  ++failures;
}

template <class Filter>
void keeps_keys(Filter filter, const char* name) {
  for (std::uint64_t key = 0; key < 1000; ++key) filter.insert(key);
  bool all = true;
  for (std::uint64_t key = 0; key < 1000; ++key) all = all && filter.may_contain(key);
  expect(all && !filter.may_contain(std::uint64_t{1} << 40), name);
}

void filters_in_memory() {
  keeps_keys(filter<std::uint64_t>(1000, 1e-6), "filter");
  keeps_keys(filter<std::uint64_t, layouts::counting>(1000, 1e-6), "counting filter");
  keeps_keys(scalable_filter<std::uint64_t>(1e-6), "scalable_filter");
  filter<> text(1000, 0.01);
  text.insert("Madrid");
  expect(text.may_contain("Madrid") && filter<>::from_bytes(text.to_bytes()) == text, "text");
}

void errors_are_values() {
  const result<any_filter> none = try_make({.capacity = 0, .target_fpr = 0.01});
  expect(!none && none.error().code() == errc::invalid_argument, "a filter without capacity is an error");
  expect(try_open("/nonexistent/users.bloom").error().code() == errc::not_found, "a missing file is an error");

  const std::string path = "without_exceptions.bloom";
  std::remove(path.c_str());
  result<any_filter> made = try_create(path, {.capacity = 1000, .target_fpr = 0.01});
  expect(made.has_value() && made.value().insert("Madrid"), "a file is created");
  expect(!try_close(made.value()).has_value(), "the file is closed");
  expect(try_create(path, {.capacity = 1000, .target_fpr = 0.01}, {.replace = false}).error().code() ==
             errc::already_exists,
         "an existing file is an error");

  const result<any_filter> opened = try_open(path);
  expect(opened && opened.value().may_contain("Madrid") && !opened.value().may_contain("Lima"), "the file is opened");
  const std::optional<error> refused = try_save(opened.value(), path, {.replace = false});
  expect(refused && refused->code() == errc::already_exists, "an existing file is not replaced");
  expect(!try_save(opened.value(), path, {.replace = true}).has_value(), "a file is replaced");
  std::remove(path.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "fail")
    return try_make({.capacity = 0}).value().may_contain("Madrid") ? 1 : 0;
  filters_in_memory();
  errors_are_values();
  return failures;
}
