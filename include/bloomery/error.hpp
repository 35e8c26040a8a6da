// bloomery::error, the only exception type of the library. Sizing, creating, opening, saving and network operations
// throw it. In memory, may_contain cannot fail, and insert only if a quotient filter is full.
//
// An error carries a class, the value expected and found, and a hint: a code for what the caller can do about it.
#pragma once

#include <bloomery/detail/export.hpp>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace BLOOMERY_EXPORT bloomery {

/// The class of an error, for programs.
enum class errc : std::uint8_t {
  invalid_argument,  ///< a number outside its range, or an unknown name
  too_large,         ///< a size beyond 64 bits, this machine's memory or a layout's limit
  not_found,         ///< no such file
  not_permitted,     ///< the system denies reading or writing
  not_a_filter,      ///< the bytes are not a bloomery file
  wrong_version,     ///< a bloomery file of a format this library does not know
  damaged,           ///< a bloomery file whose bytes contradict each other
  incompatible,      ///< two filters, or a filter and a type, whose parameters differ
  already_exists,    ///< a file that should be created exists
  locked,            ///< another process is writing
  io,                ///< reading or writing failed: full disk, broken device
  unavailable,       ///< a server could not be reached in time; the operation may or may not have been executed
  full,              ///< a quotient filter has no room for a key
};

/// The name of the enumerator: "invalid_argument".
const char* name_of(errc code) noexcept;

/// What to do about an error, as a code. sentence_of() returns it in English.
///
/// A sentence names functions and concepts of the library, never command-line options. Front ends may use their own
/// wording: cli/text/error_text.cpp names the options of the command.
enum class hint : std::uint8_t {
  none,  ///< no known remedy

  // opening
  open_read_write,
  open_with_log,
  wait_for_writer,
  wait_or_choose_another_name,
  wait_for_replacement,
  choose_another_name,
  try_again,
  use_its_program,
  use_its_version,
  name_regular_file,
  allow_no_lock,

  // secrets
  give_the_secret,
  give_a_secret,
  leave_out_the_secret,
  leave_out_secret_or_hash,
  give_a_key_file,

  // making
  make_a_filter,
  import_first,
  rebuild_with_scheme,
  make_shared_filter,
  make_counting_filter,
  make_filter_with_log,
  make_foldable_filter,
  make_final_size,
  make_larger_filter,
  name_layout_or_scheme,
  use_a_layout,
  use_classic_layout,
  use_listed_layout,
  use_hash_for_bytes,
  use_another_hash,
  use_fewer_keys,
  use_fewer_keys_or_classic,
  use_fewer_keys_or_layout,
  use_higher_rate,
  use_larger_capacity,
  use_more_memory,
  change_requirements,

  // static filters, merging, folding
  seal_all_keys,
  seal_again,
  seal_old_and_new_keys,
  insert_whole_hashes,
  intersect_plain_filters,
  merge_like_filters,
  use_window_by_time,
  begin_empty,
  halve_less_often,

  // damage
  restore_file,
  restore_log,
  salvage_log,
  bring_back_log,
  bring_back_own_log,
  rebuild_from_log,
  move_file_away,
  remove_earlier_copy,
  free_space,
  raise_file_size_limit,
  unset_kernel,

  // servers
  build_again,
  remove_and_build_again,
  remove_key_or_choose_name,
  open_or_remove,
  remove_filter,
  drop_and_make_another,
  drop_again,
  replace_again,
  replace_by_larger,
  insert_again,
  insert_keys,
  remove_from_new,
  pull_again,
  merge_again,
  merge_after_replacement,
  use_more_shards,
  use_time_window,
  make_for_most_keys,
  build_of_equal_shards,
  give_credentials,
  allow_command,
  allow_renamed_command,
  raise_server_memory,
  fix_server_disk,
  check_host_and_port,
  check_server,
  check_certificates,
  give_server_address,
  give_cluster_address,
  decrypt_key,
  check_if_done,

  // Guava chains
  give_chain_params,
  make_chain,
  remove_chain,
  use_smaller_chain,
  make_larger_chain,
};

/// The name of the enumerator: "open_read_write"; "" for none.
const char* name_of(hint h) noexcept;

/// An English clause without a full stop: "open the filter for reading and writing"; "" for none.
const char* sentence_of(hint h) noexcept;

/// All hints except none, in the order above.
std::span<const hint> all_hints() noexcept;

/// A hint and its text, which defaults to the sentence of the code. Front ends also use texts without a code.
///
/// Example:
///     assert(error_hint(hint::try_again).words() == "try again");
///     const error_hint particular(hint::open_or_remove, "remove the keys {x}:m and {x}:n first");
///     assert(particular.code == hint::open_or_remove);
///     assert(particular.words() == "remove the keys {x}:m and {x}:n first");
struct error_hint {
  error_hint() = default;
  error_hint(hint c) : code(c) {}
  error_hint(hint c, std::string instead) : code(c), own_words(std::move(instead)) {}
  error_hint(std::string words) : own_words(std::move(words)) {}
  error_hint(const char* words) : own_words(words) {}

  bool empty() const noexcept { return code == hint::none && own_words.empty(); }
  std::string words() const { return own_words.empty() ? sentence_of(code) : own_words; }

  hint code = hint::none;
  std::string own_words = {};  ///< a more specific text for this error; empty: the code's sentence
};

/// The parts of an error message. what() omits empty parts.
struct error_text {
  std::string what;      ///< what failed: "not a bloomery filter"
  std::string where;     ///< the file, address or field: "users.bloom"
  std::string expected;  ///< the expected value, where a value was read and compared
  std::string found;     ///< the value found instead
  error_hint hint;       ///< what the caller can do
};

/// An error with codes for programs and what(), one English sentence without options of any command line:
/// "users.bloom: file is truncated: expected 8192 bytes, found 5000; restore the file from a copy or build it again".
///
/// Example:
///     try {
///       filter<> impossible(1'000'000, 1.5);
///     } catch (const error& e) {
///       assert(e.code() == errc::invalid_argument && e.text().where == "rate" && e.text().hint.empty());
///     }
class error : public std::runtime_error {
 public:
  error(errc code, error_text text);
  error(const error&) = default;
  error(error&&) = default;
  error& operator=(const error&) = default;
  error& operator=(error&&) = default;
  ~error() override;  // out of line, so that only the library has the table of virtual functions, with run-time types

  errc code() const noexcept { return code_; }
  const error_text& text() const noexcept { return text_; }

 private:
  errc code_;
  error_text text_;
};

}  // namespace bloomery
