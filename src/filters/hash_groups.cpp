#include "filters/hash_groups.hpp"

#include "platform/temporary_file.hpp"

#include <bloomery/error.hpp>

#include <algorithm>
#include <utility>

namespace bloomery {
namespace {

constexpr std::uint64_t least_block = std::uint64_t{16} << 10;  // bytes
constexpr std::uint64_t most_block = std::uint64_t{2} << 20;    // a disk reads it in about the time of a seek

}  // namespace

hash_groups::hash_groups(const std::string& folder, std::uint64_t memory)
    : folder_(folder),
      file_(posix::temporary_file(folder)),
      block_(std::clamp(memory / count / 4096 * 4096, least_block, most_block) / sizeof(std::uint64_t)),
      buffers_(count * block_) {}

void hash_groups::append(std::span<const std::uint64_t> hash64s) {
  for (const std::uint64_t hash64 : hash64s) {
    const std::uint64_t g = group_of(hash64);
    one_group& group = groups_[g];
    buffers_[g * block_ + group.size % block_] = hash64;
    if (++group.size % block_ != 0) continue;
    write(std::span(buffers_).subspan(g * block_, block_), blocks_);
    group.blocks.push_back(blocks_++);
  }
}

void hash_groups::finish() {
  for (std::uint64_t g = 0; g < count; ++g) {
    one_group& group = groups_[g];
    if (group.size % block_ == 0) continue;
    write(std::span(buffers_).subspan(g * block_, group.size % block_), blocks_);
    group.blocks.push_back(blocks_++);
  }
  std::vector<std::uint64_t>().swap(buffers_);  // assigning {} would keep the memory
}

void hash_groups::read(std::uint64_t group, std::uint64_t first, std::span<std::uint64_t> to) const {
  while (!to.empty()) {
    const std::span<std::uint64_t> piece = to.first(std::min<std::uint64_t>(to.size(), block_ - first % block_));
    const std::uint64_t at = groups_[group].blocks[first / block_] * block_ + first % block_;
    const std::span<std::uint8_t> bytes(reinterpret_cast<std::uint8_t*>(piece.data()), piece.size_bytes());
    if (posix::read_at(file_.get(), bytes, at * sizeof(std::uint64_t), folder_) < bytes.size()) {
      throw error(errc::io, {"a temporary file was truncated", folder_, "", "", hint::try_again});
    }
    first += piece.size();
    to = to.subspan(piece.size());
  }
}

void hash_groups::replace(std::uint64_t group, std::span<const std::uint64_t> hash64s) {
  groups_[group].size = hash64s.size();
  for (const std::uint64_t block : groups_[group].blocks) {
    const auto piece = hash64s.first(std::min<std::uint64_t>(hash64s.size(), block_));
    write(piece, block);
    hash64s = hash64s.subspan(piece.size());
  }
}

void hash_groups::write(std::span<const std::uint64_t> hash64s, std::uint64_t block) {
  try {
    posix::write_at(file_.get(), {reinterpret_cast<const std::uint8_t*>(hash64s.data()), hash64s.size_bytes()},
                    block * block_ * sizeof(std::uint64_t), folder_);
  } catch (const error& e) {
    error_text text = e.text();
    text.what = "temporary file: " + text.what;
    if (text.hint.code == hint::free_space) text.hint = {hint::free_space, "set TMPDIR to a folder with more space"};
    throw error(e.code(), std::move(text));
  }
}

}  // namespace bloomery
