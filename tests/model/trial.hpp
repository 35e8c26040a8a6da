// A trial: a filter and its reference execute a sequence of operations, and everything comparable is compared after
// each operation.
#pragma once

#include "model/expect.hpp"
#include "model/killed_writer.hpp"
#include "model/operation.hpp"
#include "model/peer.hpp"
#include "model/reference.hpp"
#include "model/subject.hpp"
#include "support/test.hpp"

#include <chrono>
#include <thread>

namespace bloomery_model {

using bloomery::errc;
using bloomery::filter_handle;
using bloomery::filter_summary;
using bloomery::removal;
using bloomery_tests::code_of;

class trial {
 public:
  trial(const kind& k, const setting& s)
      : promises_(k.promises), setting_(s), truth_(k.promises.memory, k.promises.window), subject_(k.make(s)) {
    if (peer::exists_for(promises_, handle().local())) peer_.emplace(*handle().local(), setting_.seed);
    set_time();
    check_all();
  }

  void step(const operation& o) {
    switch (o.what) {
      case verb::insert: insert(o); break;
      case verb::remove: remove(o); break;
      case verb::look_up: look_up_singly(o); break;
      case verb::merge: merge(o); break;
      case verb::copy: copy(); break;
      case verb::reopen: reopen(); break;
      case verb::kill: kill(o); break;
      case verb::tick: tick(o.amount * truth_.slice() / 8); break;
      case verb::turn_back: now_ -= std::min<std::uint64_t>(now_, o.amount * truth_.slice() / 8); break;
      case verb::rotate: subject_->rotate(); break;
      case verb::replace: replace(o); break;
      case verb::give_up: subject_->give_up(); break;
      case verb::rebuild: subject_->rebuild(); break;
      case verb::clear: clear(); break;
      case verb::fill: fill(o); break;
      case verb::cancel: cancel(o); break;
      case verb::refuse: refuse(); break;
    }
    set_time();
    check_all();
  }

  /// What takes many keys: the false-positive rate at the end.
  void finish() {
    check_summary();
    const std::uint64_t asked = filter_handle::keys_of_a_call + 1000;  // more than one call takes
    std::vector<key_id> ids(asked);
    std::iota(ids.begin(), ids.end(), absent_keys);
    const std::vector<bool> found = look_up(ids, form::plain);
    const auto hits = static_cast<std::uint64_t>(std::count(found.begin(), found.end(), true));

    constexpr double hardly_ever = 1e-9;
    const std::string measured = std::to_string(hits) + " of " + std::to_string(asked) + " absent keys are found";
    if (promises_.rate.is_exact) {
      const std::optional<double> exact = subject_->exact_rate();
      expect(exact.has_value(), "the kind does not tell its exact rate");
      const std::string rate = measured + ", with an exact rate of " + std::to_string(*exact);
      expect(binomial_tail(hits, asked, *exact) > hardly_ever, "too many false positives: " + rate);
      expect(binomial_head(hits, asked, *exact) > hardly_ever, "too few false positives: " + rate);
    }
    if (promises_.able.has_window ? !ever_overfull_ : keeps_promise()) {
      const auto bitmaps = static_cast<double>(handle().summary().growths.value_or(0) + 1);  // their rates add up
      const double most = promises_.target_fpr * promises_.rate.factor * bitmaps;
      expect(binomial_tail(hits, asked, most) > hardly_ever, "more false positives than promised: " + measured);
      expect(binomial_tail(taken_for_seen_, new_inserted_, most) > hardly_ever,
             "too many new keys taken for seen: " + std::to_string(taken_for_seen_) + " of " +
                 std::to_string(new_inserted_));
    }
  }

 private:
  filter_handle& handle() { return subject_->handle(); }

  // Whether no more keys were ever in than the filter was made for.
  bool keeps_promise() const { return promises_.able.grows || most_ever_ <= setting_.capacity; }

  // ---- time -------------------------------------------------------------------------------------------------

  void tick(std::uint64_t milliseconds) {
    now_ += milliseconds;
    if (promises_.memory != memory::window_of_servers) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(milliseconds, 2 * truth_.slice())));
  }

  void set_time() {
    if (promises_.memory != memory::window_of_time) return;
    subject_->set_time(now_);
    truth_.set_moment(now_, now_);
  }

  // Runs call(), and passes its time to the reference.
  template <class Call>
  void timed(Call call) {
    if (promises_.memory != memory::window_of_servers) return call();
    const std::uint64_t from = subject_->server_time();
    call();
    truth_.set_moment(from, subject_->server_time());
  }

  // ---- looking up -------------------------------------------------------------------------------------------

  std::vector<bool> look_up(const std::vector<key_id>& ids, form as) { return look_up_in(handle(), ids, as); }

  std::vector<bool> look_up_in(filter_handle& filter, const std::vector<key_id>& ids, form as) const {
    const key_batch keys(promises_.keys, ids, setting_.seed);
    std::vector<bloomery::key_hash> room;
    const bloomery::key_span span = as == form::hashes ? filter.prepare(keys.span(), room) : keys.span(as);
    constexpr std::uint64_t untouched = 0x5555aaaa5555aaaa;
    const std::size_t words = (ids.size() + 63) / 64;
    std::vector<std::uint64_t> bitmap(words + 1, untouched);
    filter.contains(span, bitmap);
    expect(bitmap[words] == untouched, "contains() writes behind its answers");
    std::vector<bool> found(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) found[i] = (bitmap[i / 64] >> i % 64 & 1) != 0;
    if (ids.size() % 64 != 0) expect(bitmap[words - 1] >> ids.size() % 64 == 0, "unused bits of the answers are set");
    return found;
  }

  void compare(const std::vector<bool>& found, const std::string& where) const {
    bool nothing_is_in = true;
    for (key_id key = 0; key < universe; ++key) {
      const fact truth = truth_.of(key);
      nothing_is_in = nothing_is_in && truth == fact::absent;
      if (truth == fact::present) expect(found[key], "false negative: key " + std::to_string(key) + where);
    }
    if (!nothing_is_in || filling_ > 0 || has_full_counters_ || !promises_.is_exact_when_empty) return;
    for (key_id key = 0; key < universe; ++key)
      expect(!found[key], "found without keys: key " + std::to_string(key) + where);
  }

  void check_all() {
    expect_same(handle().capabilities(), promises_.able);
    std::vector<bool> found;
    timed([&] { found = look_up(all_keys(), form::plain); });
    compare(found, "");
    if (promises_.memory != memory::window_of_servers)
      expect(look_up(all_keys(), form::hashes) == found, "prepared keys get other answers");
    if (promises_.has_quick_summary) check_summary();
    check_cells();
    if (peer_) peer_->compare(*handle().local());
  }

  void look_up_singly(const operation& o) {
    if (promises_.memory == memory::window_of_servers) return;  // the answers may change meanwhile
    const std::vector<key_id> ids = ids_of(o);
    const std::vector<bool> together = look_up(ids, o.as);
    const key_batch keys(promises_.keys, ids, setting_.seed);
    const std::size_t most = promises_.is_remote() ? 10 : ids.size();
    for (std::size_t i = 0; i < std::min(most, ids.size()); ++i) {
      const bool alone = keys.with_key(i, [&](const auto& key) { return handle().contains(key); });
      expect_equal(alone, together[i], "looked up alone and in a batch, key " + std::to_string(ids[i]));
      if (const bloomery::any_filter* const bits = handle().local())
        expect_equal(keys.with_key(i, [&](const auto& key) { return bits->may_contain(key); }), alone, "by any_filter");
    }
  }

  // ---- what it says of itself -------------------------------------------------------------------------------

  void check_summary() {
    const filter_summary s = handle().summary();
    expect(s.insert_count.has_value() || promises_.counts == counting_rule::any, "no insert_count");
    const std::uint64_t count = s.insert_count.value_or(0);
    if (expected_count_) expect_equal(count, *expected_count_, "insert_count");
    expected_count_.reset();
    last_count_ = count;
    if (promises_.counts == counting_rule::copies) expect_equal(count, truth_.copies(), "copies in");
    if (promises_.counts == counting_rule::about || judges_estimate_) check_estimate(count);
    judges_estimate_ = false;
    ever_overfull_ = ever_overfull_ || s.is_overfull || (s.window && s.window->has_overfull_generation());
    if (s.fill_ratio) expect(*s.fill_ratio >= 0 && *s.fill_ratio <= 1, "a fill ratio outside 0 to 1");
    if (s.fpr) expect(*s.fpr >= 0 && *s.fpr <= 1, "an FPR outside 0 to 1");
    if (!promises_.is_remote()) expect_equal(s.window.has_value(), promises_.able.has_window, "facts of a window");
    if (!s.window || promises_.is_remote()) return;
    expect_equal(s.window->insertions, truth_.insertions(), "insertions of the window");
    expect_equal(s.window->epoch, truth_.epoch(), "epoch of the window");
    expect_equal(s.window->slice, truth_.slice(), "length of a generation");
  }

  // The cells of a key agree with the answer and, for filters in memory, with the bits.
  void check_cells() {
    if (!promises_.able.has_cells || promises_.able.has_window) return;
    const bloomery::any_filter* const bits = handle().local();
    for (const key_id id : {key_id{0}, key_id{1}, key_id{17}, key_id{333}}) {
      const std::string of_key = ", key " + std::to_string(id);
      const key_batch key(promises_.keys, {id}, setting_.seed);
      const bloomery::key_explanation told = handle().explain(key.span());
      const bool found = look_up({id}, form::plain)[0];
      expect_equal(told.maybe_present, found, "explain() and contains()" + of_key);
      if (told.fingerprint) continue;
      bool in_a_layer = false;
      for (const bloomery::explained_layer& layer : told.layers) {
        const auto set =
            std::count_if(layer.cells.begin(), layer.cells.end(), [](const auto& one) { return one.value; });
        in_a_layer |= told.slots ? set > 0 : static_cast<std::size_t>(set) == layer.cells.size();
        if (bits == nullptr || bloomery::cell_bits_of(bits->parameters()) != 1) continue;
        expect_equal(layer.cells.size(), std::size_t{bits->parameters().geometry.probes}, "cells" + of_key);
        for (const bloomery::explained_cell& one : layer.cells) {
          expect(one.cell < 8 * bits->byte_size(), "a cell behind the last one" + of_key);
          const unsigned bit = bits->bytes()[static_cast<std::size_t>(one.cell / 8)] >> one.cell % 8 & 1U;
          expect_equal(one.value, bit, "a cell and its bit" + of_key);
        }
      }
      expect_equal(in_a_layer, found, "the cells and contains()" + of_key);
    }
  }

  // ---- changes ----------------------------------------------------------------------------------------------

  filter_handle& client_of(const operation& o) {
    return promises_.is_remote() && (o.amount & 4) != 0 ? subject_->other_client() : handle();
  }

  // More copies of a key than a counter of 4 bits can tell apart: it stays full.
  bool has_many_copies(const operation& o) const { return promises_.memory == memory::copies && (o.amount & 8) != 0; }

  // The keys that may be inserted. Counters of 4 bits hold few copies; and beyond capacity some may be full.
  std::vector<key_id> admitted(const std::vector<key_id>& wanted) const {
    if (promises_.memory != memory::copies) return wanted;
    std::vector<key_id> ids;
    std::vector<std::uint32_t> more(universe);
    std::uint64_t total = truth_.copies();
    for (const key_id id : wanted) {
      if (total >= setting_.capacity || truth_.copies_of(id) + more[id] >= 3) continue;
      ++more[id];
      ++total;
      ids.push_back(id);
    }
    return ids;
  }

  void note_ever(const std::vector<key_id>& ids) {
    for (const key_id id : ids) {
      distinct_ += ever_[id] ? 0 : 1;
      ever_[id] = true;
    }
    most_ever_ = std::max(most_ever_, distinct_);
  }

  void note_inserted(const std::vector<key_id>& ids) {
    for (const key_id id : ids) truth_.insert(id);
    note_ever(ids);
  }

  void insert(const operation& o) {
    std::vector<key_id> ids = admitted(ids_of(o, (o.amount & 1) != 0 ? 3 : 1));
    if (has_many_copies(o)) {
      ids.assign(truth_.copies() + 18 <= setting_.capacity ? 18 : 0, o.first % universe);
      has_full_counters_ = has_full_counters_ || !ids.empty();
    }
    filter_handle& client = client_of(o);
    const bool quiet = (o.amount & 2) != 0;
    const std::vector<bool> before = look_up(ids, form::plain);
    const key_batch keys(promises_.keys, ids, setting_.seed);
    std::vector<bloomery::key_hash> room;
    const bloomery::key_span span = o.as == form::hashes ? client.prepare(keys.span(), room) : keys.span(o.as);

    std::vector<std::uint8_t> is_new(quiet ? 0 : ids.size(), 7);
    bloomery::change_result done;
    timed([&] { done = client.insert(span, is_new); });

    expect_equal(done.keys, ids.size(), "keys inserted");
    if (peer_) peer_->insert(ids, is_new);
    if (quiet) {
      note_inserted(ids);
    } else {
      judge(ids, before, is_new);
      expect_equal(done.changed, static_cast<std::uint64_t>(std::count(is_new.begin(), is_new.end(), 1)),
                   "keys that are certainly new");
    }
    expect(done.changed <= ids.size(), "more keys new than inserted");
    if (promises_.counts == counting_rule::new_keys) expected_count_ = last_count_ + done.changed;
  }

  // Keys outside the universe: they make a filter grow.
  void fill(const operation& o) {
    if (!promises_.able.grows) return;
    std::vector<key_id> ids(std::size_t{o.amount} * 50);
    std::iota(ids.begin(), ids.end(), next_filling_);
    next_filling_ += static_cast<key_id>(ids.size());
    const bloomery::change_result done = client_of(o).insert(key_batch(promises_.keys, ids, setting_.seed).span(o.as));
    expect_equal(done.keys, ids.size(), "keys inserted");
    for (const bool found : look_up(ids, form::plain)) expect(found, "false negative: a key of fill()");
    filling_ += ids.size();
    if (promises_.counts == counting_rule::new_keys) expected_count_ = last_count_ + done.changed;
  }

  // Notes the keys, and compares what was answered about each with what was true before it.
  void judge(const std::vector<key_id>& ids, const std::vector<bool>& before, const std::vector<std::uint8_t>& is_new) {
    std::vector<bool> seen(universe);
    std::vector<std::uint32_t> times(universe);
    for (const key_id id : ids) ++times[id];
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::string key = "key " + std::to_string(ids[i]);
      expect(is_new[i] <= 1, "an answer that is neither 0 nor 1 for " + key);
      const bool fresh = is_new[i] == 1;
      truth_.begin_insertion();
      const fact truth = truth_.of(ids[i]);
      if (fresh && promises_.is_sequential) expect(truth != fact::present, "certainly new, but it is in: " + key);
      if (fresh && !seen[ids[i]]) expect(truth != fact::present, "certainly new, but it was in: " + key);
      if (promises_.is_steady && fresh && !(seen[ids[i]] && !promises_.is_sequential))
        expect(!before[i], "certainly new, but found before: " + key);
      if (promises_.is_steady && i == 0 && promises_.is_sequential)
        expect(fresh || before[0], "not new, but not found before: " + key);
      // Of several copies that are inserted at once any may be the first.
      if (truth == fact::absent && (promises_.is_sequential ? !seen[ids[i]] : times[ids[i]] == 1)) {
        ++new_inserted_;
        taken_for_seen_ += fresh ? 0 : 1;
      }
      seen[ids[i]] = true;
      note_inserted({ids[i]});
    }
  }

  void remove(const operation& o) {
    if (!promises_.able.can_remove) return;
    // Keys that are certainly absent are refused; others that are not in must not be removed.
    const std::vector<key_id> wanted = ids_of(o);
    const std::vector<bool> found = look_up(wanted, form::plain);
    std::vector<key_id> ids;
    for (const key_id id : wanted) {
      if (truth_.of(id) == fact::present) ids.push_back(id);
    }
    std::size_t inside = ids.size();
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!found[i]) ids.push_back(wanted[i]);
    }
    if (const key_id most = truth_.most_copied(); has_many_copies(o) && truth_.copies_of(most) > 1) {
      ids.assign(truth_.copies_of(most) - 1, most);
      inside = ids.size();
    }

    const key_batch keys(promises_.keys, ids, setting_.seed);
    std::vector<bloomery::key_hash> room;
    filter_handle& client = client_of(o);
    const bloomery::key_span span = o.as == form::hashes ? client.prepare(keys.span(), room) : keys.span(o.as);
    const bool quiet = (o.amount & 2) != 0;
    std::vector<removal> results(quiet ? 0 : ids.size(), static_cast<removal>(7));
    const bloomery::change_result done = client.remove(span, results);
    expect_equal(done.keys, ids.size(), "keys looked at by remove()");
    expect_equal(done.changed, inside, "keys removed");
    for (std::size_t i = 0; i < results.size(); ++i) {
      expect(results[i] == (i < inside ? removal::removed : removal::not_found),
             std::string(i < inside ? "not removed" : "removed, though absent") + ": key " + std::to_string(ids[i]));
    }
    for (std::size_t i = 0; i < inside; ++i) truth_.remove(ids[i]);
    if (peer_) peer_->remove(ids);
  }

  void merge(const operation& o) {
    if (!promises_.able.can_merge) return;
    const std::vector<key_id> ids = admitted(ids_of(o));
    const bool is_sole_change = (o.amount & 8) != 0 && promises_.has(verb::reopen);
    if (is_sole_change) subject_->reopen();
    const subject::handle_ptr other = subject_->twin();
    reference its = truth_;
    its.clear();
    // By time the first half of its keys is up to seven generations old.
    const auto middle = ids.begin() + static_cast<std::ptrdiff_t>(ids.size() / 2);
    const std::vector<key_id> hash64s[] = {{ids.begin(), middle}, {middle, ids.end()}};
    const std::uint64_t age = std::min<std::uint64_t>(now_, o.amount % 8 * truth_.slice());
    timed([&] {
      for (const std::vector<key_id>& half : hash64s) {
        const std::uint64_t then = &half == hash64s ? now_ - age : now_;
        if (promises_.memory == memory::window_of_time) {
          other->tick(then);
          its.set_moment(then, then);
        }
        other->insert(key_batch(promises_.keys, half, setting_.seed).span());
        for (const key_id id : half) its.insert(id);
      }
      handle().merge(*other);
    });
    if (peer_) peer_->merge(*other->local());
    if (is_sole_change) subject_->reopen();
    truth_.merge(its);
    note_ever(ids);
    judges_estimate_ = true;
  }

  // insert_count where it was estimated: near the number of distinct keys.
  void check_estimate(std::uint64_t insert_count) const {
    const bool is_told = promises_.counts == counting_rule::new_keys || promises_.counts == counting_rule::about;
    if (!is_told || promises_.able.has_window || !keeps_promise()) return;
    const auto least = static_cast<double>(truth_.count(fact::present) + filling_);
    const double most = least + static_cast<double>(truth_.count(fact::either));
    const auto counted = static_cast<double>(insert_count);
    expect(counted >= 0.8 * least - 30 && counted <= 1.2 * most + 30,
           "insert_count " + std::to_string(counted) + " for " + std::to_string(least) + " keys or more");
  }

  void clear() {
    if (!promises_.able.can_clear) return;
    handle().clear();
    forget();
    if (promises_.counts != counting_rule::any) expected_count_ = 0;
  }

  void forget() {
    truth_.clear();
    if (peer_) peer_->clear();
    if (promises_.able.can_remove) subject_->forget_other_client();
    ever_.assign(universe, false);
    distinct_ = filling_ = 0;
    has_full_counters_ = false;
  }

  void replace(const operation& o) {
    std::vector<key_id> ids = ids_of(o);
    if (promises_.memory == memory::copies && ids.size() > setting_.capacity)
      ids.resize(static_cast<std::size_t>(setting_.capacity));
    timed([&] { subject_->replace(key_batch(promises_.keys, ids, setting_.seed).span()); });
    forget();
    set_time();
    note_inserted(ids);
    if (peer_) peer_->insert(ids);
  }

  // ---- files ------------------------------------------------------------------------------------------------

  void copy() {
    const subject::handle_ptr other = subject_->copy();
    if (promises_.memory == memory::window_of_time) other->tick(now_);
    std::vector<bool> found;
    timed([&] { found = look_up_in(*other, all_keys(), form::plain); });
    compare(found, " in a copy");
    if (promises_.memory != memory::window_of_servers)
      expect(found == look_up(all_keys(), form::plain), "a copy answers otherwise");
    if (promises_.is_remote()) return;
    const bloomery::capabilities able = other->capabilities();
    expect(!able.can_insert && !able.can_remove && !able.can_merge && !able.can_clear,
           "opened for reading it says that it can be changed");
    const key_batch keys(promises_.keys, {3}, setting_.seed);
    const std::optional<errc> code = code_of([&] { other->insert(keys.span()); });
    expect(code == errc::not_permitted || code == errc::incompatible, "opened for reading it takes keys");
  }

  void reopen() {
    subject_->reopen();
    if (promises_.counts == counting_rule::new_keys || promises_.counts == counting_rule::copies)
      expected_count_ = last_count_;
  }

  // Another process inserts the keys, batch by batch, and is killed.
  void kill(const operation& o) {
    constexpr std::size_t batch = 8;
    const std::vector<key_id> ids = admitted(ids_of(o));
    const auto batches = static_cast<std::uint32_t>((ids.size() + batch - 1) / batch);
    const std::uint32_t wanted = std::min(o.amount, batches);
    const bool commits = o.as == form::hashes && wanted == batches;
    subject_->close();
    const reference before = truth_;

    const auto batch_at = [&](std::uint32_t i) -> std::vector<key_id> {
      const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(i * batch);
      return {begin, begin + std::min<std::ptrdiff_t>(batch, ids.end() - begin)};
    };
    acknowledged told;
    timed([&] {
      told = killed_writer(
          batches, wanted, commits,
          [&] {
            subject::handle_ptr writer = subject_->open_writer();
            if (promises_.memory == memory::window_of_time) writer->tick(now_);
            return writer;
          },
          [&](filter_handle& writer, std::uint32_t i) {
            writer.insert(key_batch(promises_.keys, batch_at(i), setting_.seed).span());
          },
          [](filter_handle& writer) { writer.commit(); });
    });
    const std::size_t certain = std::min(told.batches * batch, ids.size());
    if (o.first % 2 == 1) subject_->lose_unsynced();
    subject_->open();

    if (peer_) peer_->restart(*handle().local());
    if (promises_.after_kill == survival::committed) {
      truth_ = before;
      if (told.committed) note_inserted(ids);
      return;
    }
    note_inserted({ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(certain)});
    set_time();
    if (promises_.able.has_window && !promises_.is_remote())
      settle_window(handle().summary().window.value(), ids.size() - certain);
    for (std::size_t i = certain; i < ids.size(); ++i) truth_.attempt(ids[i]);
    note_ever(ids);
    judges_estimate_ = true;
  }

  // A killed writer may have inserted more keys than it reported, and begun a generation for them.
  void settle_window(const bloomery::window_facts& window, std::uint64_t most_more) {
    expect(window.insertions >= truth_.insertions() && window.insertions <= truth_.insertions() + most_more,
           "insertions of a killed writer: " + std::to_string(window.insertions) + ", acknowledged " +
               std::to_string(truth_.insertions()));
    expect(window.epoch >= truth_.epoch() && window.epoch <= truth_.epoch() + most_more + 1,
           "epoch of a killed writer: " + std::to_string(window.epoch));
    truth_.set_window(window.insertions, window.epoch);
  }

  // ---- errors -----------------------------------------------------------------------------------------------

  void cancel(const operation& o) {
    if (o.count == 0 || !promises_.able.can_insert) return;
    const std::size_t part = filter_handle::keys_of_a_call;
    const bool by_deadline = o.as == form::strings;
    const bool holds_many = promises_.memory == memory::set || promises_.memory == memory::window_of_keys;
    const std::uint32_t allowed = by_deadline || !holds_many ? 0 : o.amount % 2;
    const std::vector<key_id> few = ids_of(o);
    std::vector<key_id> ids(part * allowed + 10);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = few[i % few.size()];

    std::uint32_t calls = 0;
    bloomery::call_limits limits;
    if (by_deadline)
      limits.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1);
    else
      limits.cancelled = [&] { return calls++ == allowed; };
    handle().set_limits(limits);
    const key_batch keys(promises_.keys, ids, setting_.seed);
    std::optional<bloomery::partial_error> thrown;
    try {
      handle().insert(keys.span());
    } catch (const bloomery::partial_error& e) {
      thrown = e;
    }
    handle().set_limits({});
    expect(thrown.has_value(), "an insert() that is cancelled goes on");
    expect(thrown->code() == errc::unavailable, "cancelled, with another code than unavailable");
    expect_equal(thrown->done().keys, std::uint64_t{allowed * part}, "keys done before it was cancelled");
    expect_equal(thrown->undecided(), 0U, "keys undecided when it was cancelled");
    ids.resize(static_cast<std::size_t>(thrown->done().keys));
    note_inserted(ids);
    if (peer_) peer_->insert(ids);
  }

  void refuse() {
    filter_handle& filter = handle();
    const bloomery::capabilities& able = promises_.able;
    const key_batch keys(promises_.keys, {5, 6, 7}, setting_.seed);
    const bool integers = promises_.keys == bloomery::key_kind::u64le;
    const key_batch others(integers ? bloomery::key_kind::bytes : bloomery::key_kind::u64le, {5, 6}, setting_.seed);
    std::vector<std::uint64_t> bitmap(1);

    const auto expect_code = [](errc wanted, const char* what, auto call) {
      const std::optional<errc> code = code_of(call);
      expect(code == wanted, std::string(what) + " is not refused as it should be: " +
                                 (code ? "errc " + std::to_string(static_cast<int>(*code)) : "no error"));
    };
    if (!able.can_insert) expect_code(promises_.refusal, "insert()", [&] { filter.insert(keys.span()); });
    if (!able.can_remove) expect_code(promises_.refusal, "remove()", [&] { filter.remove(keys.span()); });
    if (!able.can_clear) expect_code(promises_.refusal, "clear()", [&] { filter.clear(); });
    if (!able.has_cells) expect_code(errc::incompatible, "explain()", [&] { filter.explain(keys.span().part(0, 1)); });
    const subject::handle_ptr stranger = subject_->stranger();
    expect_code(errc::incompatible, "merge() of other parameters", [&] { filter.merge(*stranger); });
    expect_code(errc::incompatible, "keys of the other kind, looked up",
                [&] { filter.contains(others.span(), bitmap); });
    if (able.can_insert)
      expect_code(errc::incompatible, "insert() of keys of the other kind", [&] { filter.insert(others.span()); });
    std::vector<std::uint8_t> too_few(2);
    expect_code(errc::invalid_argument, "too few answers", [&] { filter.insert(keys.span(), too_few); });
    expect_code(errc::invalid_argument, "a bitmap too short", [&] { filter.contains(keys.span(), {}); });
    if (promises_.counts != counting_rule::any) expected_count_ = last_count_;
  }

  const contract& promises_;
  const setting setting_;
  reference truth_;
  std::uint64_t now_ = 1'700'000'000'000;
  std::unique_ptr<subject> subject_;
  std::optional<peer> peer_;
  std::vector<bool> ever_ = std::vector<bool>(universe);  // inserted since it was empty
  std::uint64_t distinct_ = 0;                            // of these
  std::uint64_t most_ever_ = 0;
  key_id next_filling_ = 1 << 24;
  std::uint64_t filling_ = 0;                    // keys of fill()
  std::optional<std::uint64_t> expected_count_;  // insert_count after this operation
  std::uint64_t last_count_ = 0;
  bool judges_estimate_ = false;
  std::uint64_t new_inserted_ = 0;
  std::uint64_t taken_for_seen_ = 0;
  bool ever_overfull_ = false;
  bool has_full_counters_ = false;
};

}  // namespace bloomery_model
