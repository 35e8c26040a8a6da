// Loader of the peer libraries, each with its own symbols (RTLD_LOCAL). Missing libraries are reported and skipped.
#pragma once

#include "peer.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace bench {

struct expected_peer {
  const char* file;
  const char* how;  ///< how to install it
};

inline constexpr expected_peer expected_peers[] = {
    {"leveldb", "it comes with libleveldb-dev"},
    {"abseil", "it comes with libabsl-dev"},
    {"boost_native", "configure with -DBLOOMERY_BENCH_BOOST_BLOOM=<folder that has boost/bloom.hpp>"},
    {"boost_portable", "as boost_native"},
    {"rocksdb_native", "configure with -DBLOOMERY_BENCH_ROCKSDB=<folder of RocksDB's source code>"},
    {"rocksdb_portable", "as rocksdb_native"},
    {"binary_fuse_native", "configure with -DBLOOMERY_BENCH_BINARY_FUSE=<folder that has binaryfusefilter.h>"},
    {"binary_fuse_portable", "as binary_fuse_native"},
};

/// Adds the contestants of one library.
template <class Key, class List>
void add_of(const peers& from, List& to) {
  if constexpr (sizeof(Key) == sizeof(std::uint64_t)) {
    to.insert(to.end(), from.integers.begin(), from.integers.end());
  } else {
    to.insert(to.end(), from.strings.begin(), from.strings.end());
  }
}

/// Loads the libraries in the folder peers beside this program; adds the names of absent ones to `missing`.
inline std::vector<peers> load_peers(std::vector<std::string>& missing) {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "peers";
  std::vector<peers> all;
  for (const expected_peer& peer : expected_peers) {
    const auto path = folder / (std::string(peer.file) + ".so");
    if (!std::filesystem::exists(path)) {
      std::fprintf(stderr, "SKIP %s: %s\n", peer.file, peer.how);
      missing.push_back(peer.file);
      continue;
    }
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    auto* const get_peers =
        library == nullptr ? nullptr : reinterpret_cast<void (*)(peers*)>(dlsym(library, "bloomery_bench_peers"));
    if (get_peers == nullptr) {
      std::fprintf(stderr, "SKIP %s: %s\n", peer.file, dlerror());
      missing.push_back(peer.file);
      continue;
    }
    get_peers(&all.emplace_back());
  }
  return all;
}

}  // namespace bench
