// The contents of a secret key's file, for callers that write several files together.
#pragma once

#include <bloomery/detail/export.hpp>
#include <bloomery/secret.hpp>

#include <string>

namespace BLOOMERY_EXPORT bloomery {
namespace detail {

/// The bytes that write_secret() writes.
std::string key_file_text(const secret_key& key);

}  // namespace detail
}  // namespace bloomery
