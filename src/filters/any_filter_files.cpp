// any_filter and files: creating, opening, loading and saving.
#include "file/open_file.hpp"
#include "filters/any_filter_impl.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace bloomery {

void refuse_without_secret(const params& p, const std::string& path) {
  throw error(errc::incompatible,
              {"the filter is keyed with a secret", path, "the key with check value " + key_check_text(p.key_check), "",
               hint::give_the_secret});
}

namespace {

[[noreturn]] void refuse_unknown(const char* what, const std::string& name, const std::string& names,
                                 const std::string& path) {
  throw error(errc::incompatible, {std::string("the filter has a ") + what + " that is not built in", path,
                                   "one of " + names, "'" + name + "'", hint::use_its_program});
}

}  // namespace

void refuse_without_hash(const params& p, const std::string& path) {
  if (p.scheme.empty() && find_hash(p.hash) == nullptr) refuse_unknown("hash", p.hash, hash_names(), path);
  refuse_without_secret(p, path);
}

void check_known(const params& p, const std::string& path) { check_known(p, path, false); }

// A file may name a layout, scheme or hash that only a later version or another program supports.
void check_known(const params& p, const std::string& path, bool facts_only) {
  if (!p.scheme.empty()) {
    if (find_scheme(p.scheme) == nullptr) refuse_unknown("scheme", p.scheme, scheme_names(), path);
  } else {
    if (find_layout(p.layout) == nullptr) refuse_unknown("layout", p.layout, layout_names(), path);
    if (find_hash(p.hash) == nullptr && !facts_only) refuse_unknown("hash", p.hash, hash_names(), path);
  }
  params without_capacity = p;
  if (p.scheme.empty() && find_hash(p.hash) == nullptr) {  // any hash will do, too
    without_capacity.hash.clear();
    without_capacity.seed = 0;
  }
  without_capacity.capacity = 0;  // avoids computing an FPR, which may take a second for absurd numbers
  if (p.key_check != 0) {
    without_capacity.secret = secret_key{};  // any secret will do: the header is checked without it
    without_capacity.key_check = 0;
  }
  try {
    complete(without_capacity);
  } catch (const error& e) {
    throw error(errc::damaged, {"the header contradicts itself: " + e.text().what, path, e.text().expected,
                                e.text().found, hint::restore_file});
  }
}

namespace {

// The parameters of a file, with the secret given by the caller.
params unlocked(params p, const std::optional<secret_key>& secret, const std::string& path, bool facts_only = false) {
  check_known(p, path, facts_only);
  if (p.key_check != 0 && !secret && !facts_only) refuse_without_secret(p, path);
  if (p.key_check == 0 && secret) {
    throw error(errc::incompatible, {"the filter is not keyed", path, "", "", hint::leave_out_the_secret});
  }
  if (secret && key_check(*secret) != p.key_check) {
    throw error(errc::incompatible, {"the filter is keyed with another secret", path,
                                     "the key with check value " + key_check_text(p.key_check),
                                     key_check_text(key_check(*secret)), hint::give_the_secret});
  }
  p.secret = secret;
  return p;
}

}  // namespace

namespace {

// A block changes in several steps, so a reader of the mapped file, or a killed writer, could lose keys of the block.
void refuse_in_place(const params& p, const std::string& path) {
  if (slots_of(find_layout(p.layout)) == nullptr) return;
  throw error(errc::incompatible, {"a quotient filter cannot be changed in a mapped file", path, "", p.layout,
                                   "change it as a whole: file_edit or open_filter(), or save() a filter in memory"});
}

}  // namespace

any_filter::any_filter(std::unique_ptr<impl> b) noexcept : impl_(std::move(b)) {}
any_filter::any_filter(any_filter&&) noexcept = default;
any_filter& any_filter::operator=(any_filter&&) noexcept = default;
any_filter::~any_filter() = default;

any_filter::any_filter(params p) {
  p = complete(std::move(p));
  refuse_empty_if_static(p);
  heap_storage bytes(bytes_for(p.geometry.bits));
  impl_ = std::make_unique<impl>(std::move(p), std::move(bytes));
}

any_filter::any_filter(params p, heap_storage bytes) {
  p = complete(std::move(p));
  const family kind = family_of(p);
  if (bytes.size() != bytes_for(p.geometry.bits) || (kind != family::plain && removals_of(p) == nullptr)) {
    throw error(errc::incompatible, {"the bytes do not match the parameters", "",
                                     std::to_string(bytes_for(p.geometry.bits)), std::to_string(bytes.size()), ""});
  }
  impl_ = std::make_unique<impl>(std::move(p), std::move(bytes));
  impl_->estimate_count();
}

any_filter any_filter::open(const std::string& path, const open_options& options) {
  format::open_file file = format::open(path, options);
  if (options.mode == access::read_write) refuse_log(file.parameters(), path);
  return open_any(path, options, std::move(file));
}

any_filter any_filter::open_any(const std::string& path, const open_options& options) {
  return open_any(path, options, format::open(path, options));
}

any_filter any_filter::open_any(const std::string& path, const open_options& options, format::open_file file) {
  const bool writes = options.mode == access::read_write;
  params p = unlocked(file.parameters(), options.secret, path, options.facts_only && !writes);
  if (options.to_remove && removals_of(p) == nullptr) refuse_removal(p, path);
  if (writes) refuse_keys_if_static(p, path);
  if (writes) refuse_in_place(p, path);
  mapped_storage bytes = mapped_storage::map(path, std::move(file), options);
  const file_info info = bytes.info();
  format::page_check* const unverified = bytes.unverified();
  auto b = std::make_unique<impl>(std::move(p), std::move(bytes));
  b->verify_on_use(unverified);
  b->check_window(info, writes, path);
  b->check_bytes(path);
  if (options.check == file_check::payload) b->check_slots(path);
  if (!info.clean && writes) b->estimate_count();
  b->opened_from = info;
  any_filter result(std::move(b));
  if (options.clock) result.set_clock(options.clock);
  return result;
}

any_filter any_filter::create(const std::string& path, params p, const create_options& options) {
  p = complete(std::move(p));
  refuse_empty_if_static(p);
  refuse_in_place(p, path);
  mapped_storage bytes = mapped_storage::create(path, p, options);
  return any_filter(std::make_unique<impl>(std::move(p), std::move(bytes)));
}

any_filter any_filter::load(const std::string& path, const open_options& options) {
  return loaded(load_file(path), options, path);
}

any_filter any_filter::from_bytes(std::span<const std::uint8_t> file, const open_options& options) {
  return loaded(load_bytes(file), options, "");
}

std::vector<std::uint8_t> any_filter::to_bytes(const std::string& metadata) const {
  verify();
  return file_bytes(parameters(), bytes(), *impl_->counts, metadata);
}

any_filter any_filter::clone() const {
  verify();
  heap_storage copy(impl_->bytes);
  std::copy_n(impl_->data, impl_->bytes, copy.data());
  copy.counts() = *impl_->counts;
  copy.counts().logged = copy.counts().log_generation = 0;
  auto b = std::make_unique<impl>(parameters().without_log(), std::move(copy));
  b->window = impl_->window;
  const bool was_cut_off = impl_->opened_from && !impl_->opened_from->clean;
  if (was_cut_off && !is_writable()) b->estimate_count();  // otherwise it was estimated when the filter was opened
  return any_filter(std::move(b));
}

any_filter any_filter::loaded(loaded_file file, const open_options& options, const std::string& path) {
  params p = unlocked(file.info.parameters, options.secret, path);
  if (options.to_remove && removals_of(p) == nullptr) refuse_removal(p, path);
  auto b = std::make_unique<impl>(std::move(p), std::move(file.bytes));
  b->check_slots(path);
  b->check_window(file.info, false, path);
  b->check_bytes(path);
  if (!file.info.clean) b->estimate_count();
  b->opened_from = std::move(file.info);
  any_filter result(std::move(b));
  if (options.clock) result.set_clock(options.clock);
  return result;
}

any_filter any_filter::without_bytes(params p, const open_options& options, const std::string& path) {
  p = unlocked(std::move(p), options.secret, path, options.facts_only);
  return any_filter(std::make_unique<impl>(std::move(p), heap_storage(1)));
}

void any_filter::save(const std::string& path, const std::string& metadata) const {
  save(path, create_options{.metadata = metadata});
}

void any_filter::save(const std::string& path, const create_options& options) const {
  verify();
  save_file(path, parameters(), bytes(), *impl_->counts, options);
}

mapped_storage* any_filter::mapped() noexcept { return impl_->mapped; }

void any_filter::close() {
  if (!impl_) return;
  const std::unique_ptr<impl> b = std::move(impl_);
  if (auto* mapped = std::get_if<mapped_storage>(&b->storage)) mapped->close();
}

}  // namespace bloomery
