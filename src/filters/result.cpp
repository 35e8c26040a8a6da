// Functions that report errors without exceptions.
#include <bloomery/result.hpp>

#include <exception>
#include <new>

namespace bloomery {
namespace {

// The exception that is being handled.
error present_error() {
  try {
    throw;
  } catch (const error& e) {
    return e;
  } catch (const std::bad_alloc&) {
    return {errc::too_large, {"not enough memory", "", "", "", hint::use_more_memory}};
  } catch (const std::exception& e) {  // such as std::system_error
    return {errc::io, {e.what(), "", "", "", hint::none}};
  }
}

template <class Make>
result<any_filter> made(Make make) noexcept {
  try {
    return make();
  } catch (...) {
    return present_error();
  }
}

template <class Do>
std::optional<error> done(Do work) noexcept {
  try {
    work();
    return std::nullopt;
  } catch (...) {
    return present_error();
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
