// bloom_save(BLOB, FILE), bloom_load(FILE), bloom_overlap(BLOB, BLOB) and bloomery_version().
#include "sqlite/functions.hpp"
#include "sqlite/lookup_filter.hpp"

#include <bloomery/error.hpp>
#include <bloomery/measure.hpp>

#include <cmath>
#include <string>

namespace bloomery::sqlite {
namespace {

// The filter is checked before the file is touched, and the file is replaced atomically.
void bloom_save(sqlite3_context* context, arguments values) {
  const std::string path = path_of(values[1], "bloom_save: file");
  const any_filter filter = filter_of_blob(values[0], "bloom_save: filter");
  filter.save(path, filter.opened_from()->metadata);
  sqlite3_result_int64(context, static_cast<std::int64_t>(filter.opened_from()->file_bytes));
}

void bloom_load(sqlite3_context* context, arguments values) {
  const std::string path = path_of(values[0], "bloom_load: file");
  const std::unique_ptr<filter_handle> handle = open_filter(path, {.facts_only = true});
  const auto most =
      static_cast<std::uint64_t>(sqlite3_limit(sqlite3_context_db_handle(context), SQLITE_LIMIT_LENGTH, -1));
  if (handle->local() != nullptr && handle->local()->byte_size() > most) {
    sqlite3_result_error_toobig(context);
    return;
  }
  const any_filter copy = handle->copy();  // without the number of a key log, which stays with the file
  const std::vector<std::uint8_t> blob = copy.to_bytes(handle->local()->opened_from()->metadata);
  sqlite3_result_blob64(context, blob.data(), blob.size(), SQLITE_TRANSIENT);
}

void bloom_overlap(sqlite3_context* context, arguments values) {
  const any_filter a = filter_of_blob(values[0], "bloom_overlap: first filter");
  const any_filter b = filter_of_blob(values[1], "bloom_overlap: second filter");
  if (const std::string differs = difference(a.parameters(), b.parameters()); !differs.empty()) {
    throw error(errc::incompatible, {"filters with different parameters: " + differs, "bloom_overlap", "", "",
                                     "build both filters with the same capacity and FPR"});
  }
  const overlap o = estimate_overlap(a.parameters(), count_shared(a.bytes(), b.bytes()));
  if (std::isfinite(o.keys_either.value)) sqlite3_result_double(context, o.keys_both.value);
}

void bloomery_version(sqlite3_context* context, arguments) {
  sqlite3_result_text(context, BLOOMERY_VERSION, -1, SQLITE_STATIC);
}

constexpr sql_function functions[] = {
    {"bloom_save", 2, of_files, scalar<bloom_save>},
    {"bloom_load", 1, of_files, scalar<bloom_load>},
    {"bloom_overlap", 2, of_values, scalar<bloom_overlap>},
    {"bloomery_version", 0, of_values, scalar<bloomery_version>},
};

}  // namespace

std::span<const sql_function> blob_functions() { return functions; }

}  // namespace bloomery::sqlite
