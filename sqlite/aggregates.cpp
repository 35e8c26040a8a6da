// bloom_build(KEY, CAPACITY, FPR) and bloom_union(BLOB): aggregate functions that return a filter as a BLOB.
#include "sqlite/functions.hpp"
#include "sqlite/lookup_filter.hpp"

#include <bloomery/error.hpp>

#include <optional>
#include <string>

namespace bloomery::sqlite {
namespace {

[[noreturn]] void refuse_type(const char* where, const char* expected, sqlite3_value* found) {
  throw error(errc::invalid_argument, {"wrong type", where, expected, type_of(found), ""});
}

// The parameters of the filter, from the arguments of the first row.
params wanted(sqlite3_context* context, arguments values) {
  if (sqlite3_value_type(values[1]) != SQLITE_INTEGER) refuse_type("bloom_build: capacity", "INTEGER", values[1]);
  if (const int type = sqlite3_value_type(values[2]); type != SQLITE_FLOAT && type != SQLITE_INTEGER) {
    refuse_type("bloom_build: fpr", "a number", values[2]);
  }
  const std::int64_t capacity = sqlite3_value_int64(values[1]);
  if (capacity < 0) {
    throw error(errc::invalid_argument,
                {"number out of range", "bloom_build: capacity", "at least 0", std::to_string(capacity), ""});
  }
  params p =
      complete({.capacity = static_cast<std::uint64_t>(capacity), .target_fpr = sqlite3_value_double(values[2])});
  // Checked before memory is taken: the result must be a BLOB.
  const auto most =
      static_cast<std::uint64_t>(sqlite3_limit(sqlite3_context_db_handle(context), SQLITE_LIMIT_LENGTH, -1));
  if (p.geometry.bits / 8 > most) {
    throw error(errc::too_large, {"the filter does not fit in a BLOB", "bloom_build",
                                  "at most " + std::to_string(most) + " bytes", std::to_string(p.geometry.bits / 8),
                                  "use a smaller capacity or a higher FPR, or write a file with the command bloomery"});
  }
  return p;
}

class built {
 public:
  void add(sqlite3_context* context, arguments values) {
    if (!filter_) filter_.emplace(wanted(context, values));
    if (sqlite3_value_type(values[0]) == SQLITE_NULL) return;
    with_key(values[0], key_kind::bytes, [this](auto key) { filter_->insert(key); });
  }

  std::vector<std::uint8_t> result() const { return filter_ ? filter_->to_bytes() : std::vector<std::uint8_t>(); }

 private:
  std::optional<any_filter> filter_;  // empty after an error in the first row
};

class united {
 public:
  void add(sqlite3_context*, arguments values) {
    if (sqlite3_value_type(values[0]) == SQLITE_NULL) return;
    any_filter next = filter_of_blob(values[0], "bloom_union: filter");
    if (filter_) {
      filter_->merge(next);
    } else {
      filter_.emplace(std::move(next));
    }
  }

  std::vector<std::uint8_t> result() const { return filter_ ? filter_->to_bytes() : std::vector<std::uint8_t>(); }

 private:
  std::optional<any_filter> filter_;  // empty: every BLOB was NULL
};

constexpr sql_function functions[] = {
    {"bloom_build", 3, of_values, nullptr, aggregate<built>::step, aggregate<built>::finish},
    {"bloom_union", 1, of_values, nullptr, aggregate<united>::step, aggregate<united>::finish},
};

}  // namespace

std::span<const sql_function> aggregate_functions() { return functions; }

}  // namespace bloomery::sqlite
