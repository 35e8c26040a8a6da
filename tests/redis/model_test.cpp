// The model of filters on servers: shared filters on one server and in a cluster, and Guava chains.
//
// Read tests/model/model_test.cpp first.
#include "model/run.hpp"
#include "redis/fixtures.hpp"

#include <bloomery/redis/chain.hpp>
#include <bloomery/redis/handle.hpp>

namespace bloomery_model {
namespace {

using bloomery::key_kind;
using bloomery::redis_address;
using bloomery::redis_chain;
using bloomery::redis_filter;
using bloomery::redis_growth;
using bloomery::redis_params;

// Where the filters of the tests are, and a disturbance that clients must survive: set by the suites.
redis_address (*address_of)(const std::string& name) = nullptr;
void (*disturb)() = nullptr;

// Closes the connections of all clients, and makes the server load scripts again. After that, a client that has copies
// of closed layers may report a present key as perhaps new; the test opens the other client again.
void disturb_clients_of(bloomery_tests::test_server& server) {
  server.command({"SCRIPT", "FLUSH"});
  server.command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
}

std::string next_name() {
  static std::uint64_t number = 0;
  return "model-" + std::to_string(++number);
}

contract on_servers(std::string name, key_kind keys) {
  contract c;
  c.name = std::move(name);
  c.keys = keys;
  c.able.can_clear = c.able.is_remote = true;
  c.after_kill = survival::acknowledged;
  c.counts = counting_rule::any;
  c.also = {verb::reopen, verb::kill, verb::copy};
  return c;
}

// ---- shared filters -------------------------------------------------------------------------------------------------

class shared_subject final : public subject {
 public:
  shared_subject(redis_params p, bool local_copy)
      : params_(std::move(p)), local_copy_(local_copy), address_(address_of(next_name())) {
    redis_filter::create(address_, params_, options());
    open();
  }
  ~shared_subject() override {
    handle_.reset();
    other_client_.reset();
    drop(address_);
    for (const redis_address& other : others_) drop(other);
  }

  handle_ptr twin() override {
    others_.push_back(address_of(next_name()));
    return bloomery::redis::make_handle(redis_filter::create(others_.back(), params_, options()));
  }
  void close() override {
    other_client_.reset();
    disturb();
    handle().commit();
    handle_.reset();
  }
  handle_ptr open_writer() override {
    bloomery::redis::open_options how;
    how.mode = bloomery::access::read_write;
    how.secret = params_.filter.secret;
    how.local_copy = local_copy_;
    return bloomery::redis::open_filter(address_.text(), how);
  }
  // Pulled by a client that stays open, if this kind can be pulled.
  handle_ptr copy() override {
    if (params_.growth != redis_growth::none || params_.filter.has_window()) return open_writer();
    if (!puller_) puller_ = another();
    return bloomery::make_handle(puller_->pull());
  }
  // Another client sets the expiry and takes it back. While the new filter is filled, this client inserts half of the
  // keys: they go into both filters.
  void replace(bloomery::key_span keys) override {
    const std::size_t half = keys.size() / 2;
    another().expire(std::chrono::hours(1));
    another().persist();
    other_client_.reset();
    disturb();
    another().replace(params_, [&](redis_filter& fresh) {
      if (keys.empty()) return;
      if (keys.form() == bloomery::key_span::form_of_keys::integers)
        fresh.insert(keys.part(0, half).integers());
      else
        fresh.insert(keys.part(0, half).views());
      handle().insert(keys.part(half, keys.size() - half));
    });
  }
  void give_up() override {
    struct given_up {};
    try {
      another().replace(params_, [](redis_filter&) { throw given_up{}; });
    } catch (const given_up&) {
      // The versions of its shards have changed.
    }
  }
  void rotate() override { another().rotate(); }
  std::uint64_t server_time() override {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
  }
  std::optional<double> exact_rate() override { return another().pull().current_fpr(); }

 private:
  bloomery::redis_options options() const { return {.secret = params_.filter.secret}; }
  redis_filter another() const { return redis_filter::open(address_, options()); }
  void drop(const redis_address& at) const {
    try {
      redis_filter::open(at, options()).drop();
    } catch (const bloomery::error&) {
      // The next filter has another name.
    }
  }

  redis_params params_;
  bool local_copy_;
  redis_address address_;
  std::optional<redis_filter> puller_;
  std::vector<redis_address> others_;
};

kind shared_kind(contract c, redis_params p, bool local_copy = false) {
  p.filter.keys = c.keys;
  p.filter.target_fpr = c.target_fpr;
  return {std::move(c), [p, local_copy](const setting& s) {
            redis_params own = p;
            own.filter.capacity = s.capacity;
            own.maximum = p.growth == redis_growth::to_maximum ? 100 * s.capacity : 0;
            return std::make_unique<shared_subject>(own, local_copy);
          }};
}

contract shared(std::string name, key_kind keys) {
  contract c = on_servers(std::move(name), keys);
  c.also.push_back(verb::replace);
  c.also.push_back(verb::give_up);
  return c;
}

contract shared_fixed(std::string name, key_kind keys) {
  contract c = shared(std::move(name), keys);
  c.able.can_merge = true;
  return c;
}

contract shared_growing(std::string name, key_kind keys) {
  contract c = shared(std::move(name), keys);
  c.able.grows = true;
  c.rate = {.is_exact = false, .factor = 1};
  return c;
}

kind shared_counting(std::string name, std::uint64_t shards) {
  contract c = shared(std::move(name), key_kind::bytes);
  c.able.can_remove = c.able.counts_copies = true;
  c.memory = memory::copies;
  return shared_kind(c, {.filter = {.layout = "counting"}, .shards = shards});
}

kind shared_window(std::string name, bool local_copy) {
  constexpr std::uint64_t length = 1400;
  contract c = shared(std::move(name), key_kind::u64le);
  c.able.has_window = true;
  c.memory = memory::window_of_servers;
  c.window = length;
  c.is_steady = false;
  c.rate = {.is_exact = false, .factor = 8};
  c.also.push_back(verb::rotate);
  return shared_kind(c, {.filter = {.extra = bloomery::window_of_milliseconds(length)}}, local_copy);
}

// ---- chains ---------------------------------------------------------------------------------------------------------

class chain_subject final : public subject {
 public:
  explicit chain_subject(bloomery::redis_chain_params p) : address_(address_of(next_name())) {
    redis_chain::create(address_, p);
    open();
  }
  ~chain_subject() override {
    handle_.reset();
    other_client_.reset();
    try {
      redis_chain::open(address_).drop();
    } catch (const bloomery::error&) {
      // The next chain has another name.
    }
  }

  void close() override {
    other_client_.reset();
    disturb();
    handle().commit();
    handle_.reset();
  }
  handle_ptr open_writer() override {
    return bloomery::redis::open_filter(address_.text(), {{.mode = bloomery::access::read_write}});
  }
  handle_ptr copy() override { return open_writer(); }

 private:
  redis_address address_;
};

kind chain_kind(std::string name) {
  contract c = on_servers(std::move(name), key_kind::bytes);
  c.able.grows = true;
  c.able.has_cells = false;
  c.rate = {.is_exact = false, .factor = 1.5};
  return {c, [c](const setting& s) {
            return std::make_unique<chain_subject>(bloomery::redis_chain_params{s.capacity, c.target_fpr});
          }};
}

std::vector<kind> kinds_of_servers() {
  redis_params keyed;
  keyed.filter.secret = the_secret;
  redis_params blocked;
  blocked.filter.layout = "split_block512";
  blocked.shards = 5;
  redis_params unlimited, limited;
  // Each shard starts with room for 400 keys: a few shards fill up at the same time, and soon.
  unlimited.growth = redis_growth::unlimited;
  unlimited.shards = 2;
  limited.growth = redis_growth::to_maximum;
  return {shared_kind(shared_fixed("Fixed_text", key_kind::bytes), {}),
          shared_kind(shared_fixed("Fixed_integers_line_in_shards", key_kind::u64le), blocked),
          shared_kind(shared_fixed("Fixed_text_siphash_local_copy", key_kind::bytes), keyed, true),
          shared_kind(shared_growing("Growing_text", key_kind::bytes), unlimited),
          shared_kind(shared_growing("Growing_integers_to_maximum", key_kind::u64le), limited),
          shared_counting("Counting_text", 1),
          shared_window("Window_integers", false),
          shared_window("Window_integers_local_copy", true),
          chain_kind("Chain_text")};
}

std::vector<kind> kinds_of_clusters() {
  redis_params blocked;
  blocked.shards = 7;
  redis_params unlimited;
  unlimited.growth = redis_growth::unlimited;
  unlimited.shards = 3;
  return {shared_kind(shared_fixed("Fixed_integers", key_kind::u64le), blocked),
          shared_kind(shared_growing("Growing_text", key_kind::bytes), unlimited), shared_counting("Counting_text", 7),
          chain_kind("Chain_text")};
}

class RedisModel : public bloomery_tests::on_a_server<RedisModel>, public testing::WithParamInterface<kind> {
 protected:
  void SetUp() override {
    on_a_server::SetUp();
    address_of = [](const std::string& name) { return server->address(name); };
    disturb = [] { disturb_clients_of(*server); };
  }
};

TEST_P(RedisModel, HoldsAfterEveryOperation) { EXPECT_TRUE(holds(GetParam(), is_long() ? 300 : 3, 30)); }

INSTANTIATE_TEST_SUITE_P(Every, RedisModel, testing::ValuesIn(kinds_of_servers()),
                         [](const auto& one) { return one.param.promises.name; });

class RedisModelCluster : public bloomery_tests::on_a_cluster<RedisModelCluster>,
                          public testing::WithParamInterface<kind> {
 public:
  static bloomery_tests::cluster_options options() { return {.masters = 3, .replicas = 0}; }

 protected:
  void SetUp() override {
    on_a_cluster::SetUp();
    address_of = [](const std::string& name) { return cluster->address(name); };
    disturb = [] {
      for (std::size_t i = 0; i < cluster->size(); ++i) disturb_clients_of(cluster->node(i));
    };
  }
};

TEST_P(RedisModelCluster, HoldsAfterEveryOperation) { EXPECT_TRUE(holds(GetParam(), is_long() ? 100 : 3, 20)); }

INSTANTIATE_TEST_SUITE_P(Every, RedisModelCluster, testing::ValuesIn(kinds_of_clusters()),
                         [](const auto& one) { return one.param.promises.name; });

}  // namespace
}  // namespace bloomery_model
