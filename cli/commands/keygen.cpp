// bloomery keygen -o KEYFILE: a new secret key, in a file that only its owner may read.
//
//   $ bloomery keygen -o users.key
//   bloomery: users.key: a new secret key, check value 3F60A1B2C4D5E6F7; keep it: without it its filters are useless
//
// A file that is there already is left alone: with a key that is replaced, all filters made with it would be lost.
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
  say(fmt::format("{}: a new secret key, check value {}; keep it: without it its filters are useless", options.output,
                  key_check_text(key_check(key))));
  return exit_status::found;
}

}  // namespace

void add_keygen(command_line& line) {
  command& c = line.root.subcommand("keygen", "make a secret key for --secret");
  auto& o = line.options_of(c, keygen);
  c.option("-o,--output", o.output, "FILE", "the key's file; an existing file is never replaced").required().file();
  c.example("bloomery keygen -o users.key");
  c.example("bloomery build --secret users.key -o users.bloom users.txt");
}

}  // namespace bloomery::cli
