// Kinds that take more keys than they were made for: scalable filters, which add layers, and rebuilding filters, which
// keep a log.
#include "model/file_subject.hpp"

#include <bloomery/rebuilding_filter.hpp>

namespace bloomery_model {
namespace {

using bloomery::key_kind;
using bloomery::params;

class scalable_subject final : public subject {
 public:
  explicit scalable_subject(const params& p) { handle_ = bloomery::make_scalable_handle(p); }
};

contract scalable(std::string name, key_kind keys) {
  contract c;
  c.name = std::move(name);
  c.keys = keys;
  c.able.can_clear = c.able.grows = true;
  c.rate = {.is_exact = false, .factor = 1};
  return c;
}

class rebuilding_subject final : public subject {
 public:
  explicit rebuilding_subject(params p) : params_(std::move(p)) {
    make({});
    open();
  }

  void close() override {
    handle().commit();
    handle_.reset();
    synced_ = bloomery_tests::read_file(path());
  }
  // The log, which is written first, has come further than the filter.
  void lose_unsynced() override { bloomery_tests::write_file(path(), synced_); }
  handle_ptr open_writer() override {
    return bloomery::open_filter(
        path(),
        {.mode = bloomery::access::read_write, .check = bloomery::file_check::payload, .secret = params_.secret});
  }
  handle_ptr copy() override {
    handle().settle();
    handle().local()->save(folder_ / "copy.bloom");
    return bloomery::open_filter(folder_ / "copy.bloom", {.secret = params_.secret});
  }
  void replace(bloomery::key_span keys) override {
    close();
    make(keys);
    open();
  }
  void rebuild() override {
    close();
    {
      bloomery::rebuilding_filter filter =
          bloomery::rebuilding_filter::open(path(), {.mode = bloomery::access::read_write, .secret = params_.secret});
      filter.rebuild();
      filter.close();
    }
    open();
  }

 private:
  std::string path() const { return folder_ / "filter.bloom"; }

  void make(bloomery::key_span keys) {
    bloomery::rebuilding_filter fresh = bloomery::rebuilding_filter::create(path(), params_);
    insert_keys(fresh, keys);
    fresh.close();
  }

  params params_;
  bloomery_tests::bytes synced_;  // the filter as of the last close()
  bloomery_tests::scratch_folder folder_;
};

contract rebuilding(std::string name, key_kind keys) {
  contract c;
  c.name = std::move(name);
  c.keys = keys;
  c.able.grows = true;
  c.after_kill = survival::acknowledged;
  c.counts = counting_rule::about;  // a rebuild counts again
  c.is_steady = false;              // nor does a false positive outlive it
  c.also = {verb::reopen, verb::copy, verb::kill, verb::replace, verb::rebuild};
  return c;
}

}  // namespace

std::vector<kind> growing_kinds() {
  return {
      kind_of<scalable_subject>(scalable("Scalable_text", key_kind::bytes), {}),
      kind_of<scalable_subject>(scalable("Scalable_integers", key_kind::u64le), {}),
      kind_of<scalable_subject>(scalable("Scalable_text_siphash", key_kind::bytes),
                                {.hash = "siphash", .secret = the_secret}),
      kind_of<rebuilding_subject>(rebuilding("Rebuilding_text_line", key_kind::bytes), {.layout = "split_block512"}),
      kind_of<rebuilding_subject>(rebuilding("Rebuilding_integers_page", key_kind::u64le), {.layout = "blocked_page"}),
      kind_of<rebuilding_subject>(rebuilding("Rebuilding_text_split_block_siphash", key_kind::bytes),
                                  {.layout = "split_block", .hash = "siphash", .secret = the_secret}),
      kind_of<rebuilding_subject>(rebuilding("Rebuilding_integers_blocked", key_kind::u64le), {.layout = "blocked"}),
  };
}

}  // namespace bloomery_model
