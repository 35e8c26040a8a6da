// bloom(FILE, KEY) and bloom_contains(BLOB, KEY): may the filter contain the key?
//
// If the first argument is constant, SQLite keeps the open filter as auxiliary data of the statement until the
// statement is reset, so a row costs little more than the lookup. Otherwise the connection finds the filter.
#include "sqlite/connection.hpp"
#include "sqlite/functions.hpp"

namespace bloomery::sqlite {
namespace {

using shared_filter = std::shared_ptr<lookup_filter>;

template <class Open>
void look_up(sqlite3_context* context, arguments values, Open open) {
  bool found = false;
  if (const auto* kept = static_cast<const shared_filter*>(sqlite3_get_auxdata(context, 0)); kept != nullptr) {
    found = (*kept)->may_contain(values[1]);
  } else {
    const shared_filter filter = open(**static_cast<std::shared_ptr<connection>*>(sqlite3_user_data(context)));
    found = filter->may_contain(values[1]);
    // SQLite may delete its copy at once, if memory is short or the argument is not constant.
    sqlite3_set_auxdata(context, 0, new shared_filter(filter),
                        [](void* kept_filter) { delete static_cast<shared_filter*>(kept_filter); });
  }
  sqlite3_result_int(context, found ? 1 : 0);
}

void bloom(sqlite3_context* context, arguments values) {
  look_up(context, values, [&](connection& c) { return c.filter_in_file(path_of(values[0], "bloom: file")); });
}

void bloom_contains(sqlite3_context* context, arguments values) {
  look_up(context, values, [&](connection& c) { return c.filter_in_blob(values[0]); });
}

constexpr sql_function functions[] = {
    {"bloom", 2, of_files, scalar<bloom>},
    {"bloom_contains", 2, of_values, scalar<bloom_contains>},
};

}  // namespace

std::span<const sql_function> lookup_functions() { return functions; }

}  // namespace bloomery::sqlite
