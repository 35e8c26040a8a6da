// router: the public calls, and WAIT for replicas.
#include "redis/net/router.hpp"

#include "redis/net/router_impl.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace bloomery::redis {

router::router(redis_address address, redis_connection_options options)
    : impl_(std::make_unique<impl>(std::move(address), std::move(options))) {}
router::router(router&&) noexcept = default;
router& router::operator=(router&&) noexcept = default;
router::~router() = default;

const redis_address& router::address() const noexcept { return impl_->address; }
const redis_connection_options& router::options() const noexcept { return impl_->options; }

void router::run(const batch& commands, const on_replies& take) { run(commands, take, impl_->options.time); }

void router::run(const batch& commands, const on_replies& take, milliseconds time) {
  impl_->forget_nodes();
  impl_->run(commands, take, time);
}

bool router::may_have_run_twice(std::size_t group) const noexcept { return impl_->repeats[group]; }

void router::forget_answers() noexcept {
  impl_->answers_lost = false;
  for (const std::unique_ptr<node>& n : impl_->nodes) n->has_answered = false;
}

bool router::has_lost_answers() const noexcept { return impl_->answers_lost; }
void router::watch_restarts() noexcept { impl_->watches_restarts = true; }
std::uint64_t router::possible_restarts() const noexcept { return impl_->possible_restarts; }
redis_counters& router::counters() noexcept { return impl_->counters; }
std::uint64_t router::groups_run() const noexcept { return impl_->groups_run; }

namespace {

// A copy of a reply with all its elements, as a new list.
reply_list copy_of(const reply& first) {
  reply_list copy;
  first.append_to(copy);
  return copy;
}

}  // namespace

std::vector<router::node_reply> router::run_on_nodes(const std::vector<std::string_view>& words, bool replicas_too) {
  const std::vector<node*> nodes = impl_->all_nodes(replicas_too);
  batch command;
  std::vector<node_reply> replies;
  for (const node* n : nodes) {
    command.begin(0, mode::read);
    command.start(words.size());
    for (const std::string_view word : words) command.word(word);
    replies.push_back({"", n->is_replica, {}});
  }
  impl_->run(
      command, [&](std::size_t group, reply r) { replies[group].replies = copy_of(r); }, impl_->options.time, nodes);
  for (std::size_t i = 0; i < nodes.size(); ++i) replies[i].node = nodes[i]->where.text();  // sentinels may change it
  return replies;
}

std::string router::node_of(std::size_t slot) const {
  if (!impl_->address.cluster) return impl_->nodes.front()->where.text();
  const std::uint16_t number = impl_->slots.empty() ? no_node : impl_->slots[slot % num_slots];
  return number == no_node ? "" : impl_->nodes[number]->where.text();
}

std::uint64_t router::links() const noexcept { return impl_->links; }

void router::forget_writes() noexcept {
  for (const std::unique_ptr<node>& n : impl_->nodes) n->written_on = 0;
}

unsigned router::wait_for_replicas(unsigned replicas, std::chrono::milliseconds time) {
  time = std::clamp(time, milliseconds(1), longest_time);
  unsigned fewest = replicas;
  std::vector<node*> written;
  node* lost = nullptr;
  batch command;
  for (const std::unique_ptr<node>& n : impl_->nodes) {
    if (n->written_on == 0) continue;
    written.push_back(n.get());
    // A new connection may lead to another server, or to one that was restarted and lost unsaved data: WAIT there
    // proves nothing about the writes on this connection.
    if (n->written_on != n->opened) lost = n.get();
    command.begin(0, mode::read);
    command.command({"WAIT", std::to_string(replicas), std::to_string(time.count())});
  }
  forget_writes();
  if (lost != nullptr) impl_->lose_writes(*lost);
  impl_->run(
      command,
      [&](std::size_t, reply r) {
        // The master has become a replica meanwhile: it is unknown which nodes have the data written to it.
        const bool demoted = r.is_error() && r.text().find("replica") != std::string_view::npos;
        if (!demoted) throw_if_error(r, impl_->address, "wait for replicas");
        fewest = static_cast<unsigned>(std::min<std::int64_t>(fewest, std::max<std::int64_t>(r.integer(), 0)));
      },
      impl_->options.time + time, written, impl::connections::kept);
  return fewest;
}

}  // namespace bloomery::redis
