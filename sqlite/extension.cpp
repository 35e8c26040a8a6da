// The entry point of the extension, which SQLite calls after `.load ./bloomery` for each connection.
#include "sqlite/connection.hpp"
#include "sqlite/functions.hpp"

SQLITE_EXTENSION_INIT1  // defines the table of SQLite's functions

    namespace bloomery::sqlite {
  namespace {

  constexpr int oldest = 3'031'000;  // the first version with SQLITE_DIRECTONLY and SQLITE_INNOCUOUS

  using owner = std::shared_ptr<connection>;

  int add(sqlite3* database, const sql_function& f, owner* user_data) {
    const auto destroy = [](void* data) { delete static_cast<owner*>(data); };
    return sqlite3_create_function_v2(database, f.name, f.argument_count, SQLITE_UTF8 | f.flags, user_data, f.scalar,
                                      f.step, f.finish, destroy);  // which also destroys user_data if it fails
  }

  int add_all(sqlite3* database) {
    const owner filters = std::make_shared<connection>();
    for (const sql_function& f : lookup_functions()) {
      if (const int code = add(database, f, new owner(filters)); code != SQLITE_OK) return code;
    }
    for (const auto& functions : {aggregate_functions(), blob_functions()}) {
      for (const sql_function& f : functions) {
        if (const int code = add(database, f, nullptr); code != SQLITE_OK) return code;
      }
    }
    return add_info_table(database);
  }

  }  // namespace
}  // namespace bloomery::sqlite

extern "C" [[gnu::visibility("default")]] int sqlite3_bloomery_init(sqlite3* database, char** message,
                                                                    const sqlite3_api_routines* api) noexcept {
  SQLITE_EXTENSION_INIT2(api)
  if (sqlite3_libversion_number() < bloomery::sqlite::oldest) {
    *message = sqlite3_mprintf("bloomery needs SQLite 3.31.0 or later, found %s", sqlite3_libversion());
    return SQLITE_ERROR;
  }
  try {
    return bloomery::sqlite::add_all(database);
  } catch (...) {
    return SQLITE_NOMEM;
  }
}
