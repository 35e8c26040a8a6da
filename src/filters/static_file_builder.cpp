// static_file_builder: hashes in memory, or in groups in a temporary file.
#include <bloomery/static_file_builder.hpp>

#include <bloomery/detail/static_payload.hpp>
#include <bloomery/error.hpp>
#include <bloomery/memory.hpp>
#include <bloomery/processors.hpp>
#include <bloomery/static_filter.hpp>

#include "file/payload_file.hpp"
#include "filters/hash_groups.hpp"
#include "filters/partitioned_stream.hpp"
#include "filters/static_stream.hpp"
#include "platform/temporary_file.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace bloomery {
namespace {

// A list of hashes that grows without copying if the system can move pages.
class hash64_list {
 public:
  /// False: the system has no memory for them.
  bool append(std::span<const std::uint64_t> hash64s) {
    if (hash64s.size() > room_ - size_) {
      const std::size_t room = std::max<std::size_t>(size_ + hash64s.size() + room_ / 2, 1 << 16);
      void* const moved = std::realloc(words_.get(), room * sizeof(std::uint64_t));
      if (moved == nullptr) return false;
      static_cast<void>(words_.release());  // realloc has freed it
      words_.reset(static_cast<std::uint64_t*>(moved));
      room_ = room;
    }
    std::copy(hash64s.begin(), hash64s.end(), words_.get() + size_);
    size_ += hash64s.size();
    return true;
  }

  std::span<std::uint64_t> all() const { return {words_.get(), size_}; }

 private:
  struct giver_back {
    void operator()(std::uint64_t* words) const { std::free(words); }
  };

  std::unique_ptr<std::uint64_t, giver_back> words_;
  std::size_t size_ = 0;
  std::size_t room_ = 0;
};

constexpr std::uint64_t least_memory = std::uint64_t{128} << 20;  // for hashes in a temporary file
constexpr double filter_bytes_per_key = 4.6;                      // of the widest fingerprints

}  // namespace

struct static_file_builder::impl {
  static_file_options options;
  std::string folder;
  std::uint64_t memory;
  unsigned threads;
  std::string path;
  bool takes_pieces;

  enum class state : std::uint8_t { collecting, built, published, failed };
  state now = state::collecting;
  std::uint64_t size = 0;
  hash64_list list;                   // all hashes, while there are no groups
  std::optional<hash_groups> groups;  // in the temporary file

  params parameters = {};                    // of the finished filter
  std::optional<static_bytes> made;          // in memory
  std::optional<format::payload_file> file;  // of a filter that is made in pieces

  impl(const std::string& to, const static_file_options& o)
      : options(o),
        folder(o.folder.empty() ? posix::temporary_folder(to) : o.folder),
        memory(o.memory == 0 ? available_memory().bytes / 2 : o.memory),
        threads(o.threads == 0 ? available_processors() : o.threads),
        path(to),
        takes_pieces(!is_device(to)) {
    if (takes_pieces) format::payload_file(path, options.file);  // throws if it cannot be written
  }

  // Opening a pipe and closing it again would end it for its reader.
  static bool is_device(const std::string& path) {
    std::error_code none;
    const std::filesystem::file_status status = std::filesystem::status(path, none);
    return std::filesystem::is_fifo(status) || std::filesystem::is_character_file(status) ||
           std::filesystem::is_block_file(status) || std::filesystem::is_socket(status);
  }

  // An exception leaves the state `failed`.
  void enter(state required, const char* function) {
    if (now != required) {
      throw error(errc::invalid_argument,
                  {std::string("a static_file_builder cannot ") + function + " in this state", path,
                   "append(), then build() and publish() once each, and nothing after an error", "", ""});
    }
    now = state::failed;
  }

  // A thread needs less for a filter of less than a partition.
  bool fits_in_memory(std::uint64_t keys) const {
    const auto n = static_cast<double>(keys);
    const auto used = static_cast<double>(
        std::min<std::uint64_t>({threads, partitioned::most_threads, partitioned::partitions_for(keys)}));
    const double of_thread = static_cast<double>(partitioned::memory_of_thread) *
                             std::min(1.0, n / static_cast<double>(partitioned::keys_of_partition));
    return n * (sizeof(std::uint64_t) + filter_bytes_per_key) + used * of_thread <= static_cast<double>(memory);
  }

  void append(std::span<const std::uint64_t> hash64s) {
    enter(state::collecting, "append keys");
    if (!groups && (!fits_in_memory(size + hash64s.size()) || !list.append(hash64s)))
      move_to_file(size + hash64s.size());
    if (groups) groups->append(hash64s);
    size += hash64s.size();
    now = state::collecting;
  }

  void move_to_file(std::uint64_t keys) {
    if (!takes_pieces) {
      throw error(errc::too_large,
                  {"the keys do not fit into the memory, and a device or pipe cannot be written in pieces",
                   path,
                   "at most " + std::to_string(memory) + " bytes of memory",
                   std::to_string(keys) + " keys",
                   {hint::use_more_memory, "allow more memory, or write a file"}});
    }
    groups.emplace(folder, memory / 8);
    groups->append(list.all());
    list = {};
  }

  void check_room(std::uint64_t keys) const {
    if (!groups && fits_in_memory(keys)) return;
    const std::uint64_t needed = (keys > size ? keys - size : 0) * sizeof(std::uint64_t);
    const std::uint64_t free = posix::free_bytes(folder);
    if (needed <= free) return;
    throw error(errc::io, {"not enough disk space for the hashes of the keys",
                           folder,
                           std::to_string(needed) + " bytes free",
                           std::to_string(free) + " bytes free",
                           {hint::free_space, "set TMPDIR to a folder with more space"}});
  }

  void watch(static_step step, std::uint64_t keys) const {
    if (options.watch) options.watch(step, keys);
  }

  params build(const params& hashing, unsigned width, static_structure structure) {
    static_layout_name(structure, width);  // throws
    enter(state::collecting, "build");
    const build_watch watched = [this](std::uint64_t keys) { watch(static_step::build, keys); };
    if (!groups) {
      made = static_build(structure, list.all(), width, threads, watched);
      list = {};
      parameters = static_params(hashing, width, *made, structure);
    } else {
      parameters = build_in_pieces(hashing, width, structure, watched);
    }
    now = state::built;
    return parameters;
  }

  params build_in_pieces(const params& hashing, unsigned width, static_structure structure,
                         const build_watch& watched) {
    file.emplace(path, options.file);
    groups->finish();
    const std::uint64_t limit = std::max(memory, least_memory);
    const std::uint64_t keys = remove_repetitions(limit);
    const streamed_payload written = static_stream(
        structure, {*groups, keys, limit, threads, watched}, width,
        [this](std::span<const std::uint8_t> bytes, std::uint64_t offset) { file->write(bytes, offset); });
    return static_params_of(hashing, width, written, structure);
  }

  void publish() {
    enter(state::built, "publish");
    const key_counts counts{.inserted = parameters.capacity};
    if (file)
      file->publish(parameters, counts);
    else
      save_file(path, parameters, {made->payload.data(), made->payload.size()}, counts, options.file);
    now = state::published;
  }

  // Returns the number of distinct hashes.
  std::uint64_t remove_repetitions(std::uint64_t limit) {
    const std::uint64_t hashes = limit / sizeof(std::uint64_t);
    const std::uint64_t most = std::max<std::uint64_t>(1, hashes / (partitioned::largest_group(*groups) + 1));
    const auto used = static_cast<unsigned>(std::min<std::uint64_t>({threads, most, hash_groups::count}));
    std::mutex mutex;
    std::atomic<std::uint64_t> next{0};
    std::atomic<bool> stopped{false};
    std::uint64_t distinct = 0;
    std::uint64_t done = 0;
    const auto work = [&](unsigned) {
      std::vector<std::uint64_t> hash64s;
      for (std::uint64_t g; !stopped && (g = next++) < hash_groups::count;) {
        try {
          const std::uint64_t all = groups->size_of(g);
          const std::uint64_t kept = make_distinct(g, hash64s, hashes / used);
          const std::lock_guard lock(mutex);
          if (stopped) return;
          stopped = true;  // if the watch throws, it is not called again
          distinct += kept;
          done += all;
          watch(static_step::count, done);
          stopped = false;
        } catch (...) {
          stopped = true;
          throw;
        }
      }
    };
    partitioned::in_threads(used, work);
    return distinct;
  }

  // Removes repeated hashes from a group; returns the number of the others. At most `room` hashes are in memory, so a
  // group with many repetitions is read in pieces.
  std::uint64_t make_distinct(std::uint64_t group, std::vector<std::uint64_t>& hash64s, std::uint64_t room) {
    const std::uint64_t all = groups->size_of(group);
    hash64s.resize(std::min(all, room));
    std::uint64_t kept = 0;
    for (std::uint64_t taken = 0; taken < all;) {
      if (kept > hash64s.size() / 2) partitioned::check_fits(all, sizeof(std::uint64_t), 8 * room);
      const std::uint64_t more = std::min<std::uint64_t>(hash64s.size() - kept, all - taken);
      groups->read(group, taken, std::span(hash64s).subspan(kept, more));
      taken += more;
      kept = partitioned::sort_distinct(std::span(hash64s).first(kept + more), 48);
    }
    if (kept < all) groups->replace(group, std::span(hash64s).first(kept));
    return kept;
  }
};

static_file_builder::static_file_builder(const std::string& path, const static_file_options& options)
    : impl_(std::make_unique<impl>(path, options)) {}
static_file_builder::static_file_builder(static_file_builder&&) noexcept = default;
static_file_builder& static_file_builder::operator=(static_file_builder&&) noexcept = default;
static_file_builder::~static_file_builder() = default;

void static_file_builder::append(std::span<const std::uint64_t> hash64s) { impl_->append(hash64s); }

void static_file_builder::append(std::span<const key_hash> hashes) {
  std::array<std::uint64_t, 1024> some;
  while (!hashes.empty()) {
    const std::size_t count = std::min(hashes.size(), some.size());
    for (std::size_t i = 0; i < count; ++i) some[i] = hashes[i].hash64;
    append(std::span<const std::uint64_t>(some).first(count));
    hashes = hashes.subspan(count);
  }
}

std::uint64_t static_file_builder::size() const noexcept { return impl_->size; }

std::uint64_t static_file_builder::temporary_bytes() const noexcept {
  return impl_->groups ? impl_->size * sizeof(std::uint64_t) : 0;
}

const std::string& static_file_builder::temporary_folder() const noexcept { return impl_->folder; }

void static_file_builder::check_room(std::uint64_t keys) const { impl_->check_room(keys); }

params static_file_builder::build(const params& hashing, unsigned width, static_structure structure) {
  return impl_->build(hashing, width, structure);
}

void static_file_builder::publish() { impl_->publish(); }

}  // namespace bloomery
