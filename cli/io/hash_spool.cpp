#include "cli/io/hash_spool.hpp"

#include "app/signals.hpp"
#include "cli/io/hash_set.hpp"
#include "cli/io/system_error.hpp"

namespace bloomery::cli {

using namespace app;

namespace {

constexpr std::uint64_t share_count = 256;

}  // namespace

hash_spool::hash_spool() {
  allow_many_files();
  for (std::uint64_t i = 0; i < share_count; ++i) shares_.emplace_back();
}

void hash_spool::append(std::span<const key_hash> hashes) {
  for (const key_hash& hash : hashes) {
    shares_[multiply_high(hash.hash64, share_count)].append({reinterpret_cast<const char*>(&hash), sizeof hash});
  }
}

void hash_spool::each_of(temporary_file& share, const std::function<void(std::span<const key_hash>)>& visit) {
  std::vector<key_hash> piece(1024);
  share.rewind();
  for (;;) {
    const std::size_t got = share.read({reinterpret_cast<char*>(piece.data()), piece.size() * sizeof(key_hash)});
    if (got == 0) return;
    if (stop_signal() != 0) throw interrupted();
    visit(std::span(piece).first(got / sizeof(key_hash)));
  }
}

std::uint64_t hash_spool::count_distinct() {
  std::uint64_t distinct = 0;
  for (temporary_file& share : shares_) {
    hash_set seen(static_cast<std::size_t>(share.size() / sizeof(key_hash)));
    each_of(share, [&](std::span<const key_hash> hashes) {
      for (const key_hash& hash : hashes) seen.insert(hash);
    });
    distinct += seen.size();
  }
  return distinct;
}

void hash_spool::each(const std::function<void(std::span<const key_hash>)>& visit) {
  for (temporary_file& share : shares_) each_of(share, visit);
}

}  // namespace bloomery::cli
