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
    case hint::use_its_program: return h.words() + "; 'bloomery info --header' shows its parameters";
    case hint::give_the_secret: return "give the secret of the filter: --secret KEYFILE";
    case hint::give_a_secret: return "give a secret: --secret KEYFILE";
    case hint::give_a_key_file: return "give the file of the secret, or create one with 'bloomery keygen'";
    case hint::make_a_filter:
      return "create one with 'bloomery build', or convert a filter of another system with 'bloomery import'";
    case hint::import_first: return fmt::format("convert it first: bloomery import -o NAME.bloom {}", where);
    case hint::rebuild_with_scheme:
      return "build a filter from the keys with 'bloomery build --scheme', with a scheme of the format";
    case hint::make_shared_filter: return fmt::format("create one: bloomery build -o {} -n NUMBER", where);
    case hint::make_counting_filter: return "build it with 'bloomery build --quotient' or 'bloomery build --counting'";
    case hint::make_filter_with_log: return "build one with 'bloomery build --grow'";
    case hint::make_larger_filter: return "build it again for more keys: --capacity (-n)";
    case hint::make_foldable_filter: return "'bloomery build --foldable' builds a filter that can be halved";
    case hint::seal_all_keys: return "build it again from all keys with 'bloomery seal'";
    case hint::seal_old_and_new_keys:
      return "seal the old and new keys together, or build a filter that grows with 'bloomery build --grow'";
    case hint::salvage_log:
      return "restore the log from a copy, or continue without the lost keys: bloomery rebuild FILTER --salvage";
    case hint::bring_back_log:
      return fmt::format("restore the log, or copy the filter without it: bloomery union -o COPY {0} {0}",
                         filter_of_log(where));
    case hint::bring_back_own_log:
      return fmt::format("{}: bloomery rebuild {} --salvage", h.words(), filter_of_log(where));
    case hint::rebuild_from_log: return fmt::format("{}: bloomery rebuild {}", h.words(), filter_of_log(where));
    case hint::open_or_remove:
      return fmt::format("use the existing filter, choose another name, or remove it first: bloomery redis drop {}",
                         where);
    case hint::allow_no_lock:
      return "use another file system, or give --no-lock and make sure that no other process uses the file";
    case hint::unset_kernel: return h.words() + "; 'bloomery info --build' lists them";
    case hint::use_time_window: return "give a duration: --window 24h";
    case hint::build_of_equal_shards:
      return "build it again with this size (--bits), or add its keys to a shared filter";
    case hint::remove_and_build_again:
      return fmt::format(
          "{}remove it with 'bloomery redis drop {}' and build it again; see 'bloomery redis doctor' for the cause",
          h.own_words.empty() ? "" : fmt::format("refill the lost shards with 'bloomery redis repair {}', or ", where),
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
