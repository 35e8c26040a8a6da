// Making, opening, closing and saving filters.
#include "c/boundary.hpp"
#include "c/keys.hpp"

#include <bloomery/rebuilding_filter.hpp>
#if BLOOMERY_WITH_REDIS
#include <bloomery/redis/handle.hpp>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>
#include <vector>

namespace bloomery::c {

namespace {

void want_flags(std::uint32_t flags, std::uint32_t known) {
  if ((flags & ~known) == 0) return;
  throw error(errc::invalid_argument, {"unknown flags", "flags", "a combination of " + std::to_string(known),
                                       std::to_string(flags), hint::none});
}

std::unique_ptr<filter_handle> open_by_name(const std::string& name, access mode, std::optional<secret_key> secret) {
#if BLOOMERY_WITH_REDIS
  redis::open_options options;
  options.mode = mode;
  options.secret = secret;
  return redis::open_filter(name, options);
#else
  return open_filter(name, {.mode = mode, .secret = secret});
#endif
}

}  // namespace
}  // namespace bloomery::c

using namespace bloomery;
using namespace bloomery::c;

extern "C" {

bloomery_code bloomery_make(const bloomery_params* params, bloomery_filter** filter) {
  return guarded([&] {
    wanted(filter, "filter");
    give(filter, make_handle(any_filter(complete_params_of(params))));
  });
}

bloomery_code bloomery_make_scalable(const bloomery_params* params, bloomery_filter** filter) {
  return guarded([&] {
    wanted(filter, "filter");
    give(filter, make_scalable_handle(params_of(params)));
  });
}

bloomery_code bloomery_create(const char* path, const bloomery_params* params, uint32_t flags,
                              bloomery_filter** filter) {
  return guarded([&] {
    wanted(filter, "filter");
    wanted(path, "path");
    want_flags(flags, BLOOMERY_REPLACE | BLOOMERY_GROWS);
    create_options options;
    options.replace = (flags & BLOOMERY_REPLACE) != 0;
    if ((flags & BLOOMERY_GROWS) != 0)
      return give(filter, make_handle(rebuilding_filter::create(path, params_of(params), options), path));
    give(filter, make_handle(any_filter::create(path, complete_params_of(params), options)));
  });
}

bloomery_code bloomery_open(const char* name, uint32_t flags, const uint8_t* secret, bloomery_filter** filter) {
  return guarded([&] {
    wanted(filter, "filter");
    wanted(name, "name");
    want_flags(flags, BLOOMERY_WRITE);
    give(filter,
         open_by_name(name, flags == BLOOMERY_WRITE ? access::read_write : access::read_only, secret_of(secret)));
  });
}

bloomery_code bloomery_from_bytes(const void* bytes, size_t length, const uint8_t* secret, bloomery_filter** filter) {
  return guarded([&] {
    wanted(filter, "filter");
    if (length != 0) wanted(static_cast<const char*>(bytes), "bytes");
    const auto* const first = static_cast<const std::uint8_t*>(bytes);
    give(filter, make_handle(any_filter::from_bytes({first, length}, {.secret = secret_of(secret)})));
  });
}

bloomery_code bloomery_build_static(const bloomery_params* given, uint32_t structure, unsigned width,
                                    const bloomery_keys* keys, bloomery_filter** filter) {
  return guarded([&] {
    wanted(filter, "filter");
    if (structure > BLOOMERY_RIBBON) {
      throw error(errc::invalid_argument, {"unknown structure of a static filter", "structure",
                                           "BLOOMERY_FUSE or BLOOMERY_RIBBON", std::to_string(structure), hint::none});
    }
    const std::vector<std::string_view> views = views_of(wanted(keys, "keys"));
    const bool integers = keys->form == BLOOMERY_INTEGERS;
    params hashing;
    hashing.keys = integers ? key_kind::u64le : key_kind::bytes;
    if (given != nullptr) hashing = params_of(given);
    give(filter, make_handle(any_filter::build_static(
                     hashing, integers ? integers_of(*keys) : key_span(views), width, 0,
                     structure == BLOOMERY_RIBBON ? static_structure::ribbon : static_structure::fuse)));
  });
}

bloomery_code bloomery_close(bloomery_filter* filter) {
  const std::unique_ptr<bloomery_filter> owned(filter);
  if (owned == nullptr) return BLOOMERY_OK;
  return guarded([&] { owned->handle->commit(); });
}

void bloomery_discard(bloomery_filter* filter) { delete filter; }

bloomery_code bloomery_save(const bloomery_filter* filter, const char* path) {
  return guarded([&] { handle_of(filter).save(&wanted(path, "path")); });
}

bloomery_code bloomery_to_bytes(const bloomery_filter* filter, uint8_t** bytes, size_t* length) {
  return guarded([&] {
    filter_handle& handle = handle_of(filter);
    wanted(bytes, "bytes");
    wanted(length, "length");
    if (handle.local() == nullptr) {
      throw error(errc::incompatible,
                  {"only a filter with one layer, in memory or in a file, has bytes", "", "", "", "save it as a file"});
    }
    const std::vector<std::uint8_t> file = handle.local()->to_bytes();
    auto* const copy = static_cast<std::uint8_t*>(std::malloc(std::max<std::size_t>(file.size(), 1)));
    if (copy == nullptr) throw std::bad_alloc();
    std::copy(file.begin(), file.end(), copy);
    *bytes = copy;
    *length = file.size();
  });
}

void bloomery_free_bytes(uint8_t* bytes) { std::free(bytes); }

bloomery_code bloomery_copy(const bloomery_filter* filter, bloomery_filter** copy) {
  return guarded([&] {
    wanted(copy, "copy");
    give(copy, make_handle(handle_of(filter).copy()));
  });
}

}  // extern "C"
