// Subjects of the model test for filters in memory and in files.
#pragma once

#include "model/subject.hpp"
#include "support/files.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/params.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace bloomery_model {

/// Inserts keys that are views or integers, into a filter that has no handle.
template <class Filter>
void insert_keys(Filter& filter, bloomery::key_span keys) {
  if (keys.empty()) return;
  if (keys.form() == bloomery::key_span::form_of_keys::integers)
    filter.insert(keys.integers());
  else
    filter.insert(keys.views());
}

/// A filter of these params in memory: reopened by saving and loading it.
class heap_subject : public subject {
 public:
  explicit heap_subject(bloomery::params p) : params_(bloomery::complete(std::move(p))) { handle_ = empty(); }

  handle_ptr twin() override { return empty(); }

  void close() override {
    handle().local()->save(path());
    handle_.reset();
  }
  void open() override {
    handle_ = bloomery::make_handle(bloomery::any_filter::load(path(), {.secret = params_.secret}));
  }

  handle_ptr copy() override {
    handle().local()->clone().save(folder_ / "copy.bloom");
    return bloomery::open_filter(folder_ / "copy.bloom",
                                 {.check = bloomery::file_check::payload, .secret = params_.secret});
  }

 protected:
  handle_ptr empty() const { return bloomery::make_handle(bloomery::any_filter(params_)); }
  std::string path() const { return folder_ / "filter.bloom"; }

  bloomery::params params_;
  bloomery_tests::scratch_folder folder_;
};

/// A filter of these params in a file.
class file_subject : public heap_subject {
 public:
  explicit file_subject(bloomery::params p) : heap_subject(std::move(p)) {
    handle_.reset();
    make({});
    open();
  }

  void close() override {
    handle().commit();
    handle_.reset();
  }
  void open() override { handle_ = open_writer(); }
  handle_ptr open_writer() override {
    return bloomery::open_filter(path(), {.mode = bloomery::access::read_write,
                                          .check = bloomery::file_check::payload,
                                          .secret = params_.secret,
                                          .clock = [this] { return now_; }});
  }

  void replace(bloomery::key_span keys) override {
    close();
    make(keys);
    open();
  }

  void set_time(std::uint64_t now) override {
    now_ = now;
    subject::set_time(now);
  }

 protected:
  // A file of these keys in place of the old one.
  void make(bloomery::key_span keys) {
    if (family_of(params_) == bloomery::family::quotient) {  // not changed in a mapped file
      bloomery::any_filter whole(params_);
      insert_keys(whole, keys);
      whole.save(path());
      return;
    }
    bloomery::any_filter fresh = bloomery::any_filter::create(path(), params_);
    fresh.set_clock([this] { return now_; });
    insert_keys(fresh, keys);
    fresh.close();
  }

  std::uint64_t now_ = 0;
};

/// A kind of which every filter has these params, with the capacity of the setting.
template <class Subject>
kind kind_of(contract promises, bloomery::params p, bool with_capacity = true) {
  p.keys = promises.keys;
  if (p.target_fpr == 0) p.target_fpr = promises.target_fpr;
  return {std::move(promises), [p, with_capacity](const setting& s) {
            bloomery::params own = p;
            if (with_capacity) own.capacity = s.capacity;
            return std::make_unique<Subject>(own);
          }};
}

}  // namespace bloomery_model
