// Calls from SQLite into the extension: exceptions become errors of the SQL statement.
//
// SQLite is C code, so no exception may pass through it. Every function that SQLite calls is wrapped by one of the
// templates below.
#pragma once

#include <sqlite3ext.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

SQLITE_EXTENSION_INIT3  // the functions of SQLite, as a table that the entry point receives

    namespace bloomery::sqlite {
  /// The arguments of an SQL function.
  using arguments = std::span<sqlite3_value* const>;

  /// Runs `action`. An exception becomes the result of the SQL function.
  template <class Action>
  void report_errors(sqlite3_context * context, Action action) noexcept {
    try {
      action();
    } catch (const std::bad_alloc&) {
      sqlite3_result_error_nomem(context);
    } catch (const std::exception& e) {
      sqlite3_result_error(context, e.what(), -1);
    } catch (...) {
      sqlite3_result_error(context, "unknown error", -1);
    }
  }

  /// An SQL function. If an argument is NULL, the result is NULL.
  template <void (*Body)(sqlite3_context*, arguments)>
  void scalar(sqlite3_context * context, int count, sqlite3_value** values) noexcept {
    report_errors(context, [&] {
      const arguments all(values, static_cast<std::size_t>(count));
      for (sqlite3_value* value : all) {
        if (sqlite3_value_type(value) == SQLITE_NULL) return;  // without a result, SQLite returns NULL
      }
      Body(context, all);
    });
  }

  /// An aggregate function with a State, which is created for the first row:
  ///
  ///   void add(sqlite3_context*, arguments)
  ///   std::vector<std::uint8_t> result()      a BLOB
  ///
  /// Without rows, the result is NULL.
  template <class State>
  struct aggregate {
    static void step(sqlite3_context* context, int count, sqlite3_value** values) noexcept {
      report_errors(context, [&] {
        auto** state = static_cast<State**>(sqlite3_aggregate_context(context, sizeof(State*)));
        if (state == nullptr) throw std::bad_alloc();
        if (*state == nullptr) *state = new State;
        (*state)->add(context, arguments(values, static_cast<std::size_t>(count)));
      });
    }

    // SQLite calls it once for each group, also after an error.
    static void finish(sqlite3_context* context) noexcept {
      report_errors(context, [&] {
        auto** state = static_cast<State**>(sqlite3_aggregate_context(context, 0));
        const std::unique_ptr<State> owned(state == nullptr ? nullptr : std::exchange(*state, nullptr));
        if (owned == nullptr) return;
        const std::vector<std::uint8_t> blob = owned->result();
        if (!blob.empty()) sqlite3_result_blob64(context, blob.data(), blob.size(), SQLITE_TRANSIENT);
      });
    }
  };

}  // namespace bloomery::sqlite
