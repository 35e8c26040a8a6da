// bloomery keygen -o KEYFILE: creates a secret key, in a file that only its owner may read.
//
//   $ bloomery keygen -o users.key
//   bloomery: users.key: new secret key, check value 3F60A1B2C4D5E6F7; keep this file: without it ...
//
// An existing file is not replaced, because all filters made with a replaced key would be lost.
#include "cli/commands/common.hpp"
#include "cli/commands/grammar.hpp"

#include <bloomery/secret.hpp>

#include <fmt/format.h>

namespace bloomery::cli {
namespace {

struct keygen_options {
  std::string output;
};

exit_status keygen(const keygen_options& options) {
  const secret_key key = random_secret();
  write_secret(options.output, key);
  say(fmt::format("{}: new secret key, check value {}; keep this file: without it, filters made with it cannot be used",
                  options.output, key_check_text(key_check(key))));
  return exit_status::found;
}

}  // namespace

void add_keygen(command_line& line) {
  command& c = line.root.subcommand("keygen", "create a secret key for --secret");
  auto& o = line.options_of(c, keygen);
  c.option("-o,--output", o.output, "FILE", "new file for the key; an existing file is never replaced")
      .required()
      .file();
  c.example("bloomery keygen -o users.key");
  c.example("bloomery build --secret users.key -o users.bloom users.txt");
}

}  // namespace bloomery::cli
