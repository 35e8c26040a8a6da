// Table of hints: the name and sentence of each code.
#include <bloomery/error.hpp>

#include <array>
#include <cstddef>
#include <iterator>

namespace bloomery {
namespace {

struct row {
  hint code;
  const char* name;
  const char* sentence;
};

constexpr row rows[] = {
    {hint::none, "", ""},
    {hint::open_read_write, "open_read_write", "open the filter for reading and writing"},
    {hint::open_with_log, "open_with_log", "open the filter together with its log"},
    {hint::wait_for_writer, "wait_for_writer", "wait until the other process has closed the filter"},
    {hint::wait_or_choose_another_name, "wait_or_choose_another_name",
     "wait until the other process has closed the filter, or choose another name"},
    {hint::wait_for_replacement, "wait_for_replacement", "wait until the replacement is done"},
    {hint::choose_another_name, "choose_another_name", "choose another name"},
    {hint::try_again, "try_again", "try again"},
    {hint::use_its_program, "use_its_program", "open the filter with the program that created it"},
    {hint::use_its_version, "use_its_version", "use the version of bloomery that created it"},
    {hint::name_regular_file, "name_regular_file", "name a regular file"},
    {hint::allow_no_lock, "allow_no_lock",
     "use another file system, or allow working without a lock while no other process uses the file"},
    {hint::give_the_secret, "give_the_secret", "give the filter's secret"},
    {hint::give_a_secret, "give_a_secret", "give a secret"},
    {hint::leave_out_the_secret, "leave_out_the_secret", "leave out the secret"},
    {hint::leave_out_secret_or_hash, "leave_out_secret_or_hash", "leave out the secret or the hash"},
    {hint::give_a_key_file, "give_a_key_file", "give the secret's key file, or create a new secret"},
    {hint::make_a_filter, "make_a_filter", "create a filter first"},
    {hint::import_first, "import_first", "convert it to a file of bloomery first"},
    {hint::rebuild_with_scheme, "rebuild_with_scheme",
     "build the filter again from its keys, with a scheme of the format"},
    {hint::make_shared_filter, "make_shared_filter", "create the shared filter first"},
    {hint::make_counting_filter, "make_counting_filter", "create a counting filter, which supports removal"},
    {hint::make_filter_with_log, "make_filter_with_log", "create a filter that has a log"},
    {hint::make_foldable_filter, "make_foldable_filter", "create the filter with a size that can be halved"},
    {hint::make_final_size, "make_final_size", "create the filter with its final size"},
    {hint::make_larger_filter, "make_larger_filter", "build it again for more keys"},
    {hint::name_layout_or_scheme, "name_layout_or_scheme", "name either a scheme, or a layout and a hash"},
    {hint::use_a_layout, "use_a_layout", "use a layout instead of a scheme"},
    {hint::use_classic_layout, "use_classic_layout", "use the classic layout"},
    {hint::use_listed_layout, "use_listed_layout", "use one of the listed layouts"},
    {hint::use_hash_for_bytes, "use_hash_for_bytes", "use a hash for bytes, such as xxh3"},
    {hint::use_another_hash, "use_another_hash", "use another seed or another hash"},
    {hint::use_fewer_keys, "use_fewer_keys", "use fewer keys or a higher false-positive rate"},
    {hint::use_fewer_keys_or_classic, "use_fewer_keys_or_classic",
     "use fewer keys or a higher false-positive rate, or use the classic layout"},
    {hint::use_fewer_keys_or_layout, "use_fewer_keys_or_layout",
     "use fewer keys or a higher false-positive rate, or use a layout instead of a scheme"},
    {hint::use_higher_rate, "use_higher_rate", "use a higher false-positive rate"},
    {hint::use_larger_capacity, "use_larger_capacity", "give a larger capacity, or none"},
    {hint::use_more_memory, "use_more_memory", "allow more memory, or reduce the requirements"},
    {hint::change_requirements, "change_requirements", "leave out one of the two requirements"},
    {hint::seal_all_keys, "seal_all_keys", "collect all keys and build a static filter from them"},
    {hint::seal_again, "seal_again", "restore the file from a copy, or seal the keys again"},
    {hint::seal_old_and_new_keys, "seal_old_and_new_keys",
     "seal old and new keys together, or create a filter that can grow"},
    {hint::insert_whole_hashes, "insert_whole_hashes", "insert keys or 128-bit hashes"},
    {hint::intersect_plain_filters, "intersect_plain_filters",
     "create plain filters of the same keys and intersect those"},
    {hint::merge_like_filters, "merge_like_filters", "merge filters with the same size, layout, hash and secret"},
    {hint::use_window_by_time, "use_window_by_time", "use a window of time, which can be merged"},
    {hint::begin_empty, "begin_empty", "start again with an empty filter"},
    {hint::halve_less_often, "halve_less_often", "halve the filter fewer times"},
    {hint::restore_file, "restore_file", "restore the file from a copy or build it again"},
    {hint::restore_log, "restore_log", "restore the log from a copy"},
    {hint::salvage_log, "salvage_log", "restore the log from a copy, or rebuild the filter from the rest of the log"},
    {hint::bring_back_log, "bring_back_log", "bring the log back, or copy the filter without it"},
    {hint::bring_back_own_log, "bring_back_own_log",
     "bring the filter's own log back, or rebuild the filter from this log, without its present keys"},
    {hint::rebuild_from_log, "rebuild_from_log", "choose another name, or rebuild the filter from this log"},
    {hint::move_file_away, "move_file_away", "choose another name for the filter, or move this file away"},
    {hint::remove_earlier_copy, "remove_earlier_copy",
     "this copy is from an earlier rebuild: remove it, or give it another name"},
    {hint::free_space, "free_space", "free some space or choose another disk"},
    {hint::raise_file_size_limit, "raise_file_size_limit", "raise the limit on file sizes (ulimit -f)"},
    {hint::unset_kernel, "unset_kernel", "unset BLOOMERY_KERNEL to use the best kernels of this machine"},
    {hint::build_again, "build_again", "build the filter again"},
    {hint::remove_and_build_again, "remove_and_build_again", "remove the filter and build it again"},
    {hint::remove_key_or_choose_name, "remove_key_or_choose_name",
     "remove this key, or choose another name for the filter"},
    {hint::open_or_remove, "open_or_remove", "open the filter as it is, choose another name, or remove it first"},
    {hint::remove_filter, "remove_filter", "remove the filter instead"},
    {hint::drop_and_make_another, "drop_and_make_another", "remove the filter and create another"},
    {hint::drop_again, "drop_again", "open the filter and remove it again"},
    {hint::replace_again, "replace_again", "replace the filter again"},
    {hint::replace_by_larger, "replace_by_larger", "replace the filter by one with a larger capacity"},
    {hint::insert_again, "insert_again", "insert the keys again"},
    {hint::insert_keys, "insert_keys", "insert the keys themselves"},
    {hint::remove_from_new, "remove_from_new", "remove the keys from the new filter, if they are in it"},
    {hint::pull_again, "pull_again", "read the filter again"},
    {hint::merge_again, "merge_again", "merge again"},
    {hint::merge_after_replacement, "merge_after_replacement", "merge again when the replacement is done"},
    {hint::use_more_shards, "use_more_shards", "create the filter with more shards"},
    {hint::use_time_window, "use_time_window", "use a window of time"},
    {hint::make_for_most_keys, "make_for_most_keys", "create the filter for the maximum number of keys"},
    {hint::build_of_equal_shards, "build_of_equal_shards",
     "build the filter again with this number of bits, or insert its keys into a shared filter"},
    {hint::give_credentials, "give_credentials",
     "give user and password in the address or in BLOOMERY_REDIS_USER and BLOOMERY_REDIS_PASSWORD"},
    {hint::allow_command, "allow_command", "allow the user this command and the keys of the filter: ACL SETUSER"},
    {hint::allow_renamed_command, "allow_renamed_command", "use a server that has this command under its own name"},
    {hint::raise_server_memory, "raise_server_memory", "raise the server's maxmemory, or remove other data"},
    {hint::fix_server_disk, "fix_server_disk", "fix saving to the server's disk; until then it accepts no writes"},
    {hint::check_host_and_port, "check_host_and_port", "check the host and the port"},
    {hint::check_server, "check_server",
     "check that the server runs and can be reached; the last operation may or may not have been executed"},
    {hint::check_certificates, "check_certificates",
     "trust the issuer of the server's certificate, which must be issued for this host"},
    {hint::give_server_address, "give_server_address", "give the address of one server"},
    {hint::give_cluster_address, "give_cluster_address", "give the address of the cluster"},
    {hint::decrypt_key, "decrypt_key", "give a key without a passphrase: openssl pkey -in FILE -out PLAIN makes one"},
    {hint::check_if_done, "check_if_done",
     "the operation may or may not have been executed: check before you repeat it"},
    {hint::give_chain_params, "give_chain_params", "give the n and p that the chain was created with"},
    {hint::make_chain, "make_chain", "create the chain; if it existed, it has expired, or was dropped or evicted"},
    {hint::remove_chain, "remove_chain",
     "remove the chain's other keys and create it again; check that the server evicts nothing"},
    {hint::use_smaller_chain, "use_smaller_chain", "use a smaller n: the chain grows by bitmaps of that size"},
    {hint::make_larger_chain, "make_larger_chain", "create a chain for more keys"},
};

constexpr std::size_t count = std::size(rows);

// Rows must be in the order of the enumerators.
constexpr bool in_order() {
  for (std::size_t i = 0; i < count; ++i) {
    if (rows[i].code != static_cast<hint>(i)) return false;
  }
  return true;
}
static_assert(in_order() && rows[count - 1].code == hint::make_larger_chain);

constexpr std::array<hint, count - 1> codes = [] {
  std::array<hint, count - 1> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = rows[i + 1].code;
  return all;
}();

}  // namespace

const char* name_of(hint h) noexcept { return rows[static_cast<std::size_t>(h)].name; }

const char* sentence_of(hint h) noexcept { return rows[static_cast<std::size_t>(h)].sentence; }

std::span<const hint> all_hints() noexcept { return codes; }

}  // namespace bloomery
