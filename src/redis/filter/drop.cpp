// Removal of a shared filter: first its description, then its shards. A drop mark keeps other clients from restoring
// it, and expires after all shards are removed.
#include "redis/filter/description_check.hpp"
#include "redis/filter/lifecycle.hpp"
#include "redis/filter/scripts.hpp"

#include <bloomery/error.hpp>

#include <chrono>
#include <string>
#include <utility>

namespace bloomery {

using redis::mode;
using redis::reply;
using redis::start_on_all;

void redis_filter::drop() {
  impl& b = *impl_;
  b.refuse_in_fill();
  // Another filter may have this name by now.
  if (std::optional<redis::meta> now = b.read_meta(); now && now->epoch != b.description.epoch) {
    b.adopt(*std::move(now));
  }
  b.drop_described();
}

bool redis_filter::drop(const redis_address& address, redis_options options) {
  impl b(address, std::move(options));
  bool dropped = false;
  try {
    if (std::optional<redis::meta> found = b.read_meta()) {
      b.description = *std::move(found);  // not adopted: no secret is needed
      b.drop_described();
      return true;
    }
  } catch (const error& e) {
    if (e.code() != errc::damaged) throw;
    dropped = b.drop_text(redis::meta_key(address.name));
    dropped |= b.drop_text(redis::second_key(address.name));
  }
  // Otherwise the shards of an interrupted replacement would be considered shards of a filter.
  dropped |= b.drop_text(redis::replacement_key(address.name));
  dropped |= b.remove_orphans();
  return dropped;
}

void redis_filter::impl::drop_described() {
  bool done = false;
  std::string coming;
  start_on_all(commands, redis::scripts::drop, address.name, description, 0);
  run(
      [&](std::size_t, reply r) {
        done = r.size() == 1;
        if (done) coming = r[0].text();
      },
      "remove the filter");
  if (!done) throw error(errc::locked, {"the filter was replaced during the call", where(), "", "", hint::drop_again});
  unlink(description);
  unlink_coming(coming);
  let_mark_expire(description);
}

bool redis_filter::impl::drop_text(const std::string& key) {
  std::string text;
  commands.clear();
  commands.begin(redis::slot_of(key), mode::write);
  commands.command({"GET", key});
  run([&](std::size_t, reply r) { text = r.text(); }, "remove the filter");
  return text.starts_with("bloomery=") && withdraw(key, text);
}

void redis_filter::impl::let_mark_expire(const redis::meta& m) {
  const std::string mark = redis::mark_key(m.instance);
  commands.clear();
  commands.begin(redis::slot_of(mark), mode::write);
  commands.command({"PEXPIRE", mark, std::to_string(std::chrono::milliseconds(redis::time_of_mark).count())});
  run([](std::size_t, reply) {}, "remove the filter");
}

// When the new description is in place, the old one need not be prevented from being restored.
void redis_filter::impl::remove_mark(const redis::meta& m) {
  const std::string mark = redis::mark_key(m.instance);
  commands.clear();
  commands.begin(redis::slot_of(mark), mode::write);
  commands.command({"DEL", mark});
  run([](std::size_t, reply) {}, "replace the filter");
}

}  // namespace bloomery
