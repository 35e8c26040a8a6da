// The guarded table in PostgreSQL.
#include "table.hpp"

#include <stdexcept>

#if CACHE_GUARD_HAS_POSTGRES

#include <libpq-fe.h>

#include <array>
#include <cstdlib>

namespace cache_guard {
namespace {

using connection = std::unique_ptr<PGconn, decltype(&PQfinish)>;
using result = std::unique_ptr<PGresult, decltype(&PQclear)>;

class postgres final : public user_table {
 public:
  explicit postgres(const std::string& conninfo) : to_(PQconnectdb(conninfo.c_str()), PQfinish) {
    if (PQstatus(to_.get()) != CONNECTION_OK) fail();
    // Only if missing: concurrent CREATE TABLE IF NOT EXISTS statements can fail.
    if (!find_relation()) {
      run("CREATE TABLE IF NOT EXISTS users (key TEXT PRIMARY KEY, value TEXT NOT NULL)");
    }
  }

  std::optional<std::string> find(const std::string& key) override {
    const result r = run("SELECT value FROM users WHERE key = $1", {key});
    if (PQntuples(r.get()) == 0) return std::nullopt;
    return std::string(PQgetvalue(r.get(), 0, 0), static_cast<std::size_t>(PQgetlength(r.get(), 0, 0)));
  }

  void put(const std::string& key, const std::string& value) override {
    run("INSERT INTO users VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = $2", {key, value});
  }

  std::uint64_t size() override {
    return std::strtoull(PQgetvalue(run("SELECT count(*) FROM users").get(), 0, 0), nullptr, 10);
  }

  void for_each_key(const std::function<void(std::string_view)>& take) override {
    // A cursor, so that client and server hold only some thousand rows.
    run("BEGIN");
    try {
      run("DECLARE keys NO SCROLL CURSOR FOR SELECT key FROM users");
      for (;;) {
        const result r = run("FETCH 5000 FROM keys");
        const int rows = PQntuples(r.get());
        for (int i = 0; i < rows; ++i) {
          take({PQgetvalue(r.get(), i, 0), static_cast<std::size_t>(PQgetlength(r.get(), i, 0))});
        }
        if (rows == 0) break;
      }
      run("COMMIT");
    } catch (...) {
      result(PQexec(to_.get(), "ROLLBACK"), PQclear);
      throw;
    }
  }

 private:
  [[noreturn]] void fail() const { throw std::runtime_error(std::string("PostgreSQL: ") + PQerrorMessage(to_.get())); }

  bool find_relation() {
    const result r = run("SELECT to_regclass('users') IS NOT NULL");
    return PQgetvalue(r.get(), 0, 0)[0] == 't';
  }

  // Reconnects once if the connection was lost.
  result run(const char* sql, std::initializer_list<std::string> values = {}) {
    if (PQstatus(to_.get()) != CONNECTION_OK) PQreset(to_.get());
    std::array<const char*, 2> texts{};
    std::size_t count = 0;
    for (const std::string& value : values) texts[count++] = value.c_str();
    result r(PQexecParams(to_.get(), sql, static_cast<int>(count), nullptr, texts.data(), nullptr, nullptr, 0),
             PQclear);
    const ExecStatusType status = PQresultStatus(r.get());
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) fail();
    return r;
  }

  connection to_;
};

}  // namespace

table_opener postgres_table(const std::string& conninfo) {
  return [conninfo] { return std::make_unique<postgres>(conninfo); };
}

}  // namespace cache_guard

#else

namespace cache_guard {

table_opener postgres_table(const std::string&) {
  throw std::runtime_error("this cache_guard was built without PostgreSQL: install libpq-dev and build it again");
}

}  // namespace cache_guard

#endif
