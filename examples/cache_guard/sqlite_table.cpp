// The guarded table in SQLite. The write-ahead log allows lookups during writes.
#include "table.hpp"

#include <sqlite3.h>

#include <stdexcept>

namespace cache_guard {
namespace {

class sqlite final : public user_table {
 public:
  explicit sqlite(const std::string& path) {
    if (sqlite3_open(path.c_str(), &db_) != SQLITE_OK) {
      const std::string why = sqlite3_errmsg(db_);
      sqlite3_close(db_);
      throw std::runtime_error(path + ": " + why);
    }
    sqlite3_busy_timeout(db_, 10'000);
    try {
      run("PRAGMA journal_mode = WAL");
      run("CREATE TABLE IF NOT EXISTS users (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID");
      find_ = prepare("SELECT value FROM users WHERE key = ?1");
      put_ = prepare("INSERT INTO users VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2");
    } catch (...) {
      close();
      throw;
    }
  }
  sqlite(const sqlite&) = delete;
  sqlite& operator=(const sqlite&) = delete;
  ~sqlite() override { close(); }

  std::optional<std::string> find(const std::string& key) override {
    const reset_afterwards reset{find_};
    bind(find_, 1, key);
    if (!step(find_)) return std::nullopt;
    return text(find_);
  }

  void put(const std::string& key, const std::string& value) override {
    const reset_afterwards reset{put_};
    bind(put_, 1, key);
    bind(put_, 2, value);
    step(put_);
  }

  std::uint64_t size() override {
    const one_query count(*this, "SELECT count(*) FROM users");
    step(count.statement);
    return static_cast<std::uint64_t>(sqlite3_column_int64(count.statement, 0));
  }

  void for_each_key(const std::function<void(std::string_view)>& take) override {
    const one_query all(*this, "SELECT key FROM users");
    while (step(all.statement)) take(text(all.statement));
  }

 private:
  struct reset_afterwards {
    sqlite3_stmt* statement;
    ~reset_afterwards() { sqlite3_reset(statement); }
  };
  struct one_query {
    one_query(sqlite& table, const char* sql) : statement(table.prepare(sql)) {}
    one_query(const one_query&) = delete;
    one_query& operator=(const one_query&) = delete;
    ~one_query() { sqlite3_finalize(statement); }
    sqlite3_stmt* statement;
  };

  [[noreturn]] void fail() const { throw std::runtime_error(std::string("SQLite: ") + sqlite3_errmsg(db_)); }

  void run(const char* sql) {
    if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail();
  }

  sqlite3_stmt* prepare(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(db_, sql, -1, &statement, nullptr) != SQLITE_OK) fail();
    return statement;
  }

  void bind(sqlite3_stmt* statement, int at, const std::string& value) {
    // SQLITE_STATIC is safe: the text outlives the step.
    if (sqlite3_bind_text64(statement, at, value.data(), value.size(), SQLITE_STATIC, SQLITE_UTF8) != SQLITE_OK) fail();
  }

  // Returns whether there is a row.
  bool step(sqlite3_stmt* statement) {
    const int status = sqlite3_step(statement);
    if (status != SQLITE_ROW && status != SQLITE_DONE) fail();
    return status == SQLITE_ROW;
  }

  static std::string text(sqlite3_stmt* statement) {
    const void* const bytes = sqlite3_column_blob(statement, 0);
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, 0));
    return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), size);
  }

  void close() noexcept {
    sqlite3_finalize(find_);
    sqlite3_finalize(put_);
    sqlite3_close(db_);
  }

  sqlite3* db_ = nullptr;
  sqlite3_stmt* find_ = nullptr;
  sqlite3_stmt* put_ = nullptr;
};

}  // namespace

table_opener sqlite_table(const std::string& path) {
  return [path] { return std::make_unique<sqlite>(path); };
}

}  // namespace cache_guard
