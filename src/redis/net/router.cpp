#include "redis/net/router.hpp"

#include "redis/net/router_state.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace bloomery::redis {

router::router(redis_address address, redis_connection_options options)
    : state_(std::make_unique<state>(std::move(address), std::move(options))) {}
router::router(router&&) noexcept = default;
router& router::operator=(router&&) noexcept = default;
router::~router() = default;

const redis_address& router::address() const noexcept { return state_->address; }
const redis_connection_options& router::options() const noexcept { return state_->options; }

void router::run(const batch& commands, const on_replies& take) { run(commands, take, state_->options.time); }

void router::run(const batch& commands, const on_replies& take, milliseconds time) {
  state_->forget_nodes();
  state_->run(commands, take, time);
}

bool router::may_have_run_twice(std::size_t group) const noexcept { return state_->repeats[group]; }

namespace {

// A reply and all below it, as a list of its own.
reply_list copy_of(const reply& first) {
  reply_list copy;
  first.append_to(copy);
  return copy;
}

}  // namespace

std::vector<router::node_reply> router::run_on_nodes(const std::vector<std::string_view>& words, bool replicas_too) {
  const std::vector<node*> nodes = state_->all_nodes(replicas_too);
  batch command;
  std::vector<node_reply> replies;
  for (const node* n : nodes) {
    command.begin(0, mode::read);
    command.start(words.size());
    for (const std::string_view word : words) command.word(word);
    replies.push_back({n->where.text(), n->is_replica, {}});
  }
  state_->run(
      command, [&](std::size_t group, reply r) { replies[group].replies = copy_of(r); }, state_->options.time, nodes);
  return replies;
}

std::string router::node_of(std::size_t slot) const {
  if (!state_->address.cluster) return state_->nodes.front()->where.text();
  const std::uint16_t number = state_->slots.empty() ? no_node : state_->slots[slot % num_slots];
  return number == no_node ? "" : state_->nodes[number]->where.text();
}

void router::forget_writes() noexcept {
  for (const std::unique_ptr<node>& n : state_->nodes) n->written_on = 0;
}

unsigned router::wait_for_replicas(unsigned replicas, std::chrono::milliseconds time) {
  time = std::clamp(time, milliseconds(1), longest_time);
  unsigned fewest = replicas;
  std::vector<node*> written;
  node* lost = nullptr;
  batch command;
  for (const std::unique_ptr<node>& n : state_->nodes) {
    if (n->written_on == 0) continue;
    written.push_back(n.get());
    // Another connection may be one to another server, or to one that has forgotten what it had not saved: its replicas
    // prove nothing about what was written on this one.
    if (n->written_on != n->opened) lost = n.get();
    command.begin(0, mode::read);
    command.command({"WAIT", std::to_string(replicas), std::to_string(time.count())});
  }
  forget_writes();
  if (lost != nullptr) state_->lose_writes(*lost);
  state_->run(
      command,
      [&](std::size_t, reply r) {
        // A master that has become a replica meanwhile: nobody knows who has what was written to it.
        const bool demoted = r.is_error() && r.text().find("replica") != std::string_view::npos;
        if (!demoted) throw_if_error(r, state_->address, "wait for replicas");
        fewest = static_cast<unsigned>(std::min<std::int64_t>(fewest, std::max<std::int64_t>(r.integer(), 0)));
      },
      state_->options.time + time, written, state::connections::kept);
  return fewest;
}

}  // namespace bloomery::redis
