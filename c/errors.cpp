// Errors of the C interface: the last one of each thread.
#include "c/boundary.hpp"

#include <new>
#include <string>

namespace {

// The text of an error that needs no allocation, or of one that was copied.
thread_local std::string text_of_error;
thread_local const char* last_text = "";

// The numbers of C are fixed, whatever the order of the enumerators of C++.
bloomery_code code_of(bloomery::errc code) noexcept {
  using bloomery::errc;
  switch (code) {
    case errc::invalid_argument: return BLOOMERY_INVALID_ARGUMENT;
    case errc::too_large: return BLOOMERY_TOO_LARGE;
    case errc::not_found: return BLOOMERY_NOT_FOUND;
    case errc::not_permitted: return BLOOMERY_NOT_PERMITTED;
    case errc::not_a_filter: return BLOOMERY_NOT_A_FILTER;
    case errc::wrong_version: return BLOOMERY_WRONG_VERSION;
    case errc::damaged: return BLOOMERY_DAMAGED;
    case errc::incompatible: return BLOOMERY_INCOMPATIBLE;
    case errc::already_exists: return BLOOMERY_ALREADY_EXISTS;
    case errc::locked: return BLOOMERY_LOCKED;
    case errc::io: return BLOOMERY_IO;
    case errc::unavailable: return BLOOMERY_UNAVAILABLE;
    case errc::full: return BLOOMERY_FULL;
  }
  return BLOOMERY_INTERNAL;
}

bloomery_code keep(bloomery_code code, const char* text) noexcept {
  try {
    text_of_error = text;
    last_text = text_of_error.c_str();
  } catch (...) {
    last_text = "out of memory while an error was reported";
  }
  return code;
}

}  // namespace

namespace bloomery::c {

bloomery_code keep_current_exception() noexcept {
  try {
    throw;
  } catch (const error& e) {
    return keep(code_of(e.code()), e.what());
  } catch (const std::bad_alloc&) {
    last_text = "out of memory";
    return BLOOMERY_OUT_OF_MEMORY;
  } catch (const std::exception& e) {
    return keep(BLOOMERY_INTERNAL, e.what());
  } catch (...) {
    last_text = "unknown exception";
    return BLOOMERY_INTERNAL;
  }
}

}  // namespace bloomery::c

extern "C" {

const char* bloomery_error_text(void) { return last_text; }

const char* bloomery_code_name(bloomery_code code) {
  using bloomery::errc;
  if (code == BLOOMERY_OK) return "ok";
  if (code == BLOOMERY_OUT_OF_MEMORY) return "out_of_memory";
  if (code == BLOOMERY_INTERNAL) return "internal";
  for (int i = 0; i <= static_cast<int>(errc::full); ++i) {
    const auto of_library = static_cast<errc>(i);
    if (code_of(of_library) == code) return bloomery::name_of(of_library);
  }
  return "unknown";
}

const char* bloomery_version(void) { return BLOOMERY_VERSION; }

}  // extern "C"
