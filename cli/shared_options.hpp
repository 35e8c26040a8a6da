// Options that several commands share, each group of them as one function that adds it to a command's grammar.
#pragma once

#include "cli/commands/commands.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace bloomery::cli {

/// An option whose text is turned into a value by `parse`, which names the option when it refuses.
template <class Value, class Parse>
void parsed(CLI::App& app, const std::string& flags, Value& value, Parse parse, const std::string& help) {
  const std::string name = flags.substr(0, flags.find(','));
  app.add_option_function<std::string>(
      flags, [&value, parse, name](const std::string& text) { value = parse(text, name); }, help);
}

/// The heading in --help of options for filters on servers.
inline constexpr const char* on_redis = "With an address";

inline constexpr const char* file_or_address = "the filter's file, or its address";

inline constexpr const char* addresses =
    "An address is redis://HOST[:PORT]/NAME, unix:///SOCKET?name=NAME, redis+cluster://HOST:PORT,.../NAME, or\n"
    "rediss:// and rediss+cluster:// with TLS; user and password by BLOOMERY_REDIS_USER and BLOOMERY_REDIS_PASSWORD.\n";

/// A check of file names: refuses an empty one, which is an unset variable of a script.
std::string check_name(const std::string& name);
void add_size(CLI::App& app, making_options& o, bool bits);
void add_preference(CLI::App& app, making_options& o);
void add_kind(CLI::App& app, making_options& o);
void add_now(CLI::App& app, std::optional<std::uint64_t>& now);
void add_window(CLI::App& app, window_options& o);
void add_key_shape(CLI::App& app, input_options& o);
void add_inputs(CLI::App& app, input_options& o);
void add_common(CLI::App& app, common_options& o, const std::string& quiet);
void add_secret(CLI::App& app, std::string& secret);
void add_server(CLI::App& app, server_options& o);
void add_waiting(CLI::App& app, server_options& o);
void add_from_replicas(CLI::App& app, server_options& o);
void add_life(CLI::App& app, sharing_options& o);
void add_sharing(CLI::App& app, sharing_options& o);

/// For a FILTER that is a chain of bitmaps, which its servers do not tell.
void add_chain(CLI::App& app, chain_options& o);

}  // namespace bloomery::cli
