// Functions that report errors without exceptions.
#include <bloomery/result.hpp>

#include <exception>
#include <new>

namespace bloomery {
namespace {

error of_memory() { return {errc::too_large, {"not enough memory", "", "", "", hint::use_more_memory}}; }

template <class Make>
result<any_filter> made(Make make) noexcept {
  try {
    return make();
  } catch (const error& e) {
    return e;
  } catch (const std::bad_alloc&) {
    return of_memory();
  }
}

template <class Do>
std::optional<error> done(Do work) noexcept {
  try {
    work();
    return std::nullopt;
  } catch (const error& e) {
    return e;
  } catch (const std::bad_alloc&) {
    return of_memory();
  }
}

}  // namespace

result<any_filter> try_make(const params& p) noexcept {
  return made([&] { return any_filter(complete(p)); });
}

result<any_filter> try_open(const std::string& path, const open_options& options) noexcept {
  return made([&] { return any_filter::open(path, options); });
}

result<any_filter> try_create(const std::string& path, const params& p, const create_options& options) noexcept {
  return made([&] { return any_filter::create(path, complete(p), options); });
}

std::optional<error> try_save(const any_filter& filter, const std::string& path,
                              const create_options& options) noexcept {
  return done([&] { filter.save(path, options); });
}

std::optional<error> try_close(any_filter& filter) noexcept {
  return done([&] { filter.close(); });
}

}  // namespace bloomery
