// Parser of replies, based on hiredis, with callbacks that create nodes of reply_list instead of hiredis objects.
#include "redis/net/reader.hpp"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>

namespace bloomery::redis {
namespace {

// After each consumed KiB, hiredis moves the rest of its buffer: small pieces keep that cheap.
constexpr std::size_t feed_bytes = 8 << 10;

// The object of a reply for hiredis: the index of its node in the list, plus 1.
void* object_at(std::size_t place) { return reinterpret_cast<void*>(place + 1); }
std::size_t place_of(const void* object) { return reinterpret_cast<std::size_t>(object) - 1; }

// Returning null stops parsing. No exception may propagate through hiredis.
void* append(const redisReadTask* task, reply_type type, std::int64_t integer, const char* text, std::size_t length) {
  auto& list = *static_cast<reply_list*>(task->privdata);
  if (list.nodes_.size() >= reader::most_nodes || list.characters_.size() + length > reader::most_characters)
    return nullptr;
  try {
    list.nodes_.push_back({integer, list.characters_.size(), static_cast<std::uint32_t>(length), 1, type});
    list.characters_.append(text, length);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  for (const redisReadTask* t = task->parent; t != nullptr; t = t->parent) ++list.nodes_[place_of(t->obj)].nodes;
  return object_at(list.nodes_.size() - 1);
}

void* make_text(const redisReadTask* task, char* text, std::size_t length) {
  const reply_type type = task->type == REDIS_REPLY_ERROR    ? reply_type::error
                          : task->type == REDIS_REPLY_STATUS ? reply_type::status
                                                             : reply_type::text;
  return append(task, type, 0, text, length);
}

// int or size_t, depending on the version of hiredis.
template <class Count>
void* make_array(const redisReadTask* task, Count elements) {
  return append(task, reply_type::array, static_cast<std::int64_t>(elements), "", 0);
}

void* make_integer(const redisReadTask* task, long long value) {
  return append(task, reply_type::integer, value, "", 0);
}
void* make_nil(const redisReadTask* task) { return append(task, reply_type::nil, 0, "", 0); }
void free_object(void*) {}

redisReplyObjectFunctions* functions() {
  static redisReplyObjectFunctions made = [] {
    redisReplyObjectFunctions f{};
    f.createString = make_text;
    f.createArray = make_array;
    f.createInteger = make_integer;
    f.createNil = make_nil;
#if HIREDIS_MAJOR >= 1
    // Servers send these only after a request for RESP3.
    f.createDouble = [](const redisReadTask*, double, char*, std::size_t) -> void* { return nullptr; };
    f.createBool = [](const redisReadTask*, int) -> void* { return nullptr; };
#endif
    f.freeObject = free_object;
    return f;
  }();
  return &made;
}

// The type of the reply or element that hiredis is parsing; 0 if none.
int type_begun(const redisReader& r) {
  if (r.ridx < 0) return 0;
#if HIREDIS_MAJOR >= 1
  return r.task[r.ridx]->type;
#else
  return r.rstack[r.ridx].type;
#endif
}

}  // namespace

void reader::free_reader::operator()(redisReader* r) const noexcept { redisReaderFree(r); }

reader::reader() : reader_(redisReaderCreateWithFunctions(functions())) {
  if (reader_ == nullptr) throw std::bad_alloc();
}

// Whether the incomplete data that hiredis keeps is a line of normal length or an allowed text. The type byte is after
// its cursor.
bool reader::is_bounded() {
  const std::size_t kept = reader_->len - reader_->pos;
  if (kept == 0 || type_begun(*reader_) != REDIS_REPLY_STRING) return kept <= longest_line;
  const std::string_view text(reader_->buf + reader_->pos, kept);
  const std::size_t end = text.substr(0, 32).find('\r');
  if (end == std::string_view::npos) return kept <= longest_line;
  std::size_t length = 0;
  for (const char c : text.substr(0, end)) {
    if (c < '0' || c > '9') return kept <= longest_line;
    length = 10 * length + static_cast<std::size_t>(c - '0');
    if (length > most_characters) return false;
  }
  return true;
}

reader::found reader::next(std::string_view& bytes, reply_list& list) {
  if (!problem_.empty()) return found::wrong;
  reader_->privdata = &list;
  while (true) {
    void* object = nullptr;
    if (redisReaderGetReply(reader_.get(), &object) != REDIS_OK) {
      problem_ = reader_->err == REDIS_ERR_OOM ? "a reply that exceeds the limits" : reader_->errstr;
      if (problem_.empty()) problem_ = "no reply";
      return found::wrong;
    }
    if (object != nullptr) return found::one;
    if (!is_bounded()) {
      problem_ = "a reply that exceeds the limits";
      return found::wrong;
    }
    if (bytes.empty()) return found::none;
    const std::string_view some = bytes.substr(0, feed_bytes);
    if (redisReaderFeed(reader_.get(), some.data(), some.size()) != REDIS_OK) {
      problem_ = "no memory for a reply";
      return found::wrong;
    }
    bytes.remove_prefix(some.size());
  }
}

}  // namespace bloomery::redis
