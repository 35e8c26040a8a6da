// bloom_info(FILE or BLOB): a table-valued function with one row of facts about a filter.
//
// To SQLite this is a virtual table without a stored schema. The argument is a hidden column: the planner passes its
// value to filter(), which reads the facts.
#include "sqlite/functions.hpp"
#include "sqlite/lookup_filter.hpp"

#include <bloomery/filter_facts.hpp>

#include <optional>
#include <string>

namespace bloomery::sqlite {
namespace {

void put(sqlite3_context* context, const std::string& text) {  // empty: NULL
  if (!text.empty()) sqlite3_result_text(context, text.c_str(), -1, SQLITE_TRANSIENT);
}
void put(sqlite3_context* context, double number) { sqlite3_result_double(context, number); }
void put(sqlite3_context* context, std::uint64_t number) {
  if (number <= INT64_MAX) {
    sqlite3_result_int64(context, static_cast<std::int64_t>(number));
  } else {
    put(context, static_cast<double>(number));
  }
}
template <class Number>
void put(sqlite3_context* context, const std::optional<Number>& number) {
  if (number) put(context, *number);
}

struct column {
  const char* declaration;
  void (*put)(sqlite3_context*, const filter_facts&);
};

using context_of = sqlite3_context*;
constexpr column columns[] = {
    {"layout TEXT", [](context_of c, const filter_facts& f) { put(c, f.parameters.layout); }},
    {"scheme TEXT", [](context_of c, const filter_facts& f) { put(c, f.parameters.scheme); }},
    {"hash TEXT", [](context_of c, const filter_facts& f) { put(c, f.parameters.hash); }},
    {"keys TEXT", [](context_of c, const filter_facts& f) { put(c, std::string(name_of(f.parameters.keys))); }},
    {"capacity INTEGER", [](context_of c, const filter_facts& f) { put(c, f.parameters.capacity); }},
    {"target_fpr REAL", [](context_of c, const filter_facts& f) { put(c, f.parameters.target_fpr); }},
    {"bits INTEGER", [](context_of c, const filter_facts& f) { put(c, f.bits); }},
    {"bytes INTEGER", [](context_of c, const filter_facts& f) { put(c, f.bytes); }},
    {"probes INTEGER",
     [](context_of c, const filter_facts& f) { put(c, std::uint64_t{f.parameters.geometry.probes}); }},
    {"insert_count INTEGER", [](context_of c, const filter_facts& f) { put(c, f.insert_count); }},
    {"distinct_keys INTEGER", [](context_of c, const filter_facts& f) { put(c, f.distinct_keys); }},
    {"fill_ratio REAL",
     [](context_of c, const filter_facts& f) {
       if (f.fill && f.fill->cells != 0) put(c, f.fill->fill_ratio());
     }},
    {"expected_fpr REAL", [](context_of c, const filter_facts& f) { put(c, f.expected_fpr); }},
    {"current_fpr REAL",
     [](context_of c, const filter_facts& f) {
       if (f.fill) put(c, f.fill->current_fpr);
     }},
};
constexpr int argument_column = static_cast<int>(std::size(columns));

struct cursor : sqlite3_vtab_cursor {
  std::optional<filter_facts> facts;  // empty: past the row
};

int fail(sqlite3_vtab* t, const char* message) {
  sqlite3_free(t->zErrMsg);
  t->zErrMsg = sqlite3_mprintf("%s", message);
  return SQLITE_ERROR;
}

filter_facts facts_of(sqlite3_value* filter) {
  if (sqlite3_value_type(filter) == SQLITE_BLOB) {
    return make_handle(filter_of_blob(filter, "bloom_info: filter"))->info(info_depth::bits);
  }
  return open_filter(path_of(filter, "bloom_info: filter"), {.facts_only = true})->info(info_depth::bits);
}

int connect(sqlite3* database, void*, int, const char* const*, sqlite3_vtab** made, char**) noexcept try {
  std::string schema = "CREATE TABLE bloom_info(";
  for (const column& c : columns) schema.append(c.declaration).append(", ");
  if (const int code = sqlite3_declare_vtab(database, (schema + "filter HIDDEN)").c_str()); code != SQLITE_OK) {
    return code;
  }
  sqlite3_vtab_config(database, SQLITE_VTAB_DIRECTONLY);  // it reads files
  *made = new sqlite3_vtab{};
  return SQLITE_OK;
} catch (...) {
  return SQLITE_NOMEM;
}

int disconnect(sqlite3_vtab* t) noexcept {
  delete t;
  return SQLITE_OK;
}

int best_index(sqlite3_vtab* t, sqlite3_index_info* index) noexcept {
  bool named = false;
  for (int i = 0; i < index->nConstraint; ++i) {
    const auto& constraint = index->aConstraint[i];
    if (constraint.iColumn != argument_column || constraint.op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
    named = true;
    if (constraint.usable == 0) continue;
    index->aConstraintUsage[i].argvIndex = 1;
    index->aConstraintUsage[i].omit = 1;
    index->estimatedCost = 1000;
    index->estimatedRows = 1;
    index->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
    return SQLITE_OK;
  }
  // Named but not usable: the planner must choose another order of the tables.
  return named ? SQLITE_CONSTRAINT : fail(t, "missing argument: bloom_info(FILE or BLOB)");
}

int open_cursor(sqlite3_vtab*, sqlite3_vtab_cursor** made) noexcept try {
  *made = new cursor{};
  return SQLITE_OK;
} catch (...) {
  return SQLITE_NOMEM;
}

int close_cursor(sqlite3_vtab_cursor* c) noexcept {
  delete static_cast<cursor*>(c);
  return SQLITE_OK;
}

int filter(sqlite3_vtab_cursor* c, int, const char*, int, sqlite3_value** values) noexcept try {
  auto& facts = static_cast<cursor*>(c)->facts;
  facts.reset();
  if (sqlite3_value_type(values[0]) != SQLITE_NULL) facts = facts_of(values[0]);  // NULL: no row
  return SQLITE_OK;
} catch (const std::bad_alloc&) {
  return SQLITE_NOMEM;
} catch (const std::exception& e) {
  return fail(c->pVtab, e.what());
} catch (...) {
  return fail(c->pVtab, "unknown error");
}

int next(sqlite3_vtab_cursor* c) noexcept {
  static_cast<cursor*>(c)->facts.reset();
  return SQLITE_OK;
}

int eof(sqlite3_vtab_cursor* c) noexcept { return static_cast<cursor*>(c)->facts ? 0 : 1; }

int put_column(sqlite3_vtab_cursor* c, sqlite3_context* context, int i) noexcept {
  if (i < argument_column) {
    report_errors(context, [&] { columns[i].put(context, *static_cast<cursor*>(c)->facts); });
  }
  return SQLITE_OK;
}

int row_id(sqlite3_vtab_cursor*, sqlite3_int64* id) noexcept {
  *id = 1;
  return SQLITE_OK;
}

// Without xCreate, the table exists in every database, and CREATE VIRTUAL TABLE is refused.
const sqlite3_module module = [] {
  sqlite3_module m = {};
  m.xConnect = connect;
  m.xDisconnect = disconnect;
  m.xBestIndex = best_index;
  m.xOpen = open_cursor;
  m.xClose = close_cursor;
  m.xFilter = filter;
  m.xNext = next;
  m.xEof = eof;
  m.xColumn = put_column;
  m.xRowid = row_id;
  return m;
}();

}  // namespace

int add_info_table(sqlite3* database) {
  return sqlite3_create_module_v2(database, "bloom_info", &module, nullptr, nullptr);
}

}  // namespace bloomery::sqlite
