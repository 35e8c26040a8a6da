#include "cli/text/error_text.hpp"

#include <bloomery/error.hpp>

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace bloomery::cli {
namespace {

// The path of the filter, if an error names its key log FILTER.log.
std::string filter_of_log(const std::string& log) {
  constexpr std::string_view ending = ".log";
  return log.ends_with(ending) ? log.substr(0, log.size() - ending.size()) : log;
}

}  // namespace

std::string hint_text(const error& e) {
  const error_hint& h = e.text().hint;
  const std::string& where = e.text().where;
  switch (h.code) {
    case hint::give_the_secret: return "give the filter's own secret: --secret KEYFILE";
    case hint::give_a_secret: return "give it a secret: --secret KEYFILE";
    case hint::give_a_key_file: return "give the secret's own file, or make one with 'bloomery keygen'";
    case hint::make_a_filter: return "make one with 'bloomery build'";
    case hint::make_shared_filter: return fmt::format("make one: bloomery build -o {} -n NUMBER", where);
    case hint::make_counting_filter: return "make a counting filter with 'bloomery build --counting'";
    case hint::make_filter_with_log: return "make one with 'bloomery build --grow'";
    case hint::make_foldable_filter: return "'bloomery build --foldable' makes one that can be halved";
    case hint::seal_all_keys: return "make it of all its keys with 'bloomery seal'";
    case hint::seal_old_and_new_keys:
      return "seal old and new keys together, or make a filter that can grow with 'bloomery build --grow'";
    case hint::salvage_log:
      return "restore the log from a copy, or continue with the rest of it: bloomery rebuild FILTER --salvage";
    case hint::bring_back_log:
      return fmt::format("bring the log back, or copy the filter without it: bloomery union -o COPY {0} {0}",
                         filter_of_log(where));
    case hint::bring_back_own_log:
      return fmt::format("{}: bloomery rebuild {} --salvage", h.words(), filter_of_log(where));
    case hint::rebuild_from_log: return fmt::format("{}: bloomery rebuild {}", h.words(), filter_of_log(where));
    case hint::open_or_remove:
      return fmt::format("open it as it is, choose another name, or remove it first: bloomery redis drop {}", where);
    case hint::allow_no_lock:
      return "use another file system, or give --no-lock and see to it that no other process uses the file";
    case hint::unset_kernel: return h.words() + "; 'bloomery info --build' lists them";
    case hint::use_time_window: return "give a time: --window";
    case hint::build_of_equal_shards:
      return "build it again with this number of bits (-m), or add its keys to a shared filter";
    case hint::remove_and_build_again:
      return fmt::format(
          "{}remove it with 'bloomery redis drop {}' and build it again; see 'bloomery redis doctor' for the cause",
          h.own_words.empty() ? "" : fmt::format("refill what is lost with 'bloomery redis repair {}', or ", where),
          where);
    default: return h.words();
  }
}

std::string sentence_of(const error& e) {
  error_text text = e.text();
  text.hint = hint_text(e);
  return error(e.code(), std::move(text)).what();
}

}  // namespace bloomery::cli
