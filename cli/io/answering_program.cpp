#include "cli/io/answering_program.hpp"

#include "app/numbers.hpp"
#include "app/signals.hpp"
#include "cli/io/system_error.hpp"

#include <bloomery/error.hpp>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <utility>

namespace bloomery::cli {
namespace {

constexpr std::size_t most_unwritten = std::size_t{1} << 20;
constexpr std::size_t longest_answer = 4096;
constexpr std::chrono::milliseconds time_to_exit(2000);  // after the end of the output, for the exit status

std::string excerpt(std::string_view text) {
  constexpr std::size_t most = 100;
  return text.size() <= most ? std::string(text) : std::string(text.substr(0, most)) + "...";
}

}  // namespace

answering_program::answering_program(std::string command, std::chrono::milliseconds patience, false_negatives& missing)
    : command_(std::move(command)), patience_(patience), missing_(missing), child_(command_) {}

void answering_program::insert(std::span<const std::string_view> keys) {
  send({.verb = "add", .count = keys.size()}, keys);
}

void answering_program::look_up(std::span<const std::string_view> keys, std::uint64_t& found) {
  send({.verb = "has", .count = keys.size(), .keys = keys, .found = &found}, keys);
}

void answering_program::look_up_inserted(std::span<const std::string_view> keys) {
  send({.verb = "has", .count = keys.size(), .copies = {keys.begin(), keys.end()}}, keys);
}

void answering_program::send(lines of, std::span<const std::string_view> keys) {
  if (keys.empty()) return;
  for (const std::string_view key : keys) {
    if (key.find('\n') != std::string_view::npos) {
      throw error(errc::invalid_argument, {"a key contains a line feed, but the program reads one key per line",
                                           "--exec", "", "'" + excerpt(key) + "'", "use keys without line feeds"});
    }
    unwritten_.append(of.verb).append(" ").append(key).append("\n");
  }
  sent_ += keys.size();
  pending_.push_back(std::move(of));
  if (ended_) require_all();
  while (unwritten_.size() - written_ > most_unwritten && !ended_) exchange();
}

void answering_program::finish() {
  while (written_ < unwritten_.size() && !input_closed_ && !ended_) exchange();
  child_.close_input();
  while (!ended_) exchange();
  require_all();
  if (!child_.wait(patience_)) {
    if (app::stop_signal() != 0) throw app::interrupted();
    refuse_hang();
  }
  if (child_.exit_code() != 0)
    refuse("the program failed after its last answer", "exit status 0", "a program that " + child_.ending());
}

void answering_program::refuse_hang() const {
  const std::string time = app::duration_text(static_cast<std::uint64_t>(patience_.count()));
  const char* const hint = "give a longer --timeout if the program is slow";
  if (answered_ == sent_) {
    const bool has_exited = child_.exit_code().has_value();
    refuse(has_exited ? "a descendant of the program keeps its output open" : "the program did not exit",
           "the end within " + time, has_exited ? "an open pipe" : "a running program", hint);
  }
  refuse(fmt::format("no answer{} for {}", next_line(), time), "one line per line of input", "nothing", hint);
}

// Writes and reads what the pipes allow; waits if they allow nothing.
void answering_program::exchange() {
  const bool has_lines = written_ < unwritten_.size() && !input_closed_;
  std::array<pollfd, 3> ends = {{{ended_ ? -1 : child_.output(), POLLIN, 0},
                                 {has_lines ? child_.input() : -1, POLLOUT, 0},
                                 {app::stop_descriptor(), POLLIN, 0}}};
  const auto most = static_cast<int>(std::min<std::chrono::milliseconds::rep>(patience_.count(), INT_MAX));
  const int ready = ::poll(ends.data(), ends.size(), most);
  if (app::stop_signal() != 0) throw app::interrupted();
  if (ready < 0 && errno != EINTR) fail("wait for", "the pipes of a program");
  if (ready == 0) refuse_hang();
  if (ready < 0) return;
  if (ends[1].revents != 0) write_some();
  if (ends[0].revents != 0) read_some();
}

void answering_program::write_some() {
  const ssize_t count = ::write(child_.input(), unwritten_.data() + written_, unwritten_.size() - written_);
  if (count < 0) {
    if (errno == EAGAIN || errno == EINTR) return;
    if (errno != EPIPE) fail("write to", command_);
    input_closed_ = true;  // it may still answer; the end of its output shows whether it answered everything
    return;
  }
  written_ += static_cast<std::size_t>(count);
  if (written_ > most_unwritten || written_ == unwritten_.size()) {
    unwritten_.erase(0, written_);
    written_ = 0;
  }
}

void answering_program::read_some() {
  std::array<char, std::size_t{1} << 16> piece;
  const ssize_t count = ::read(child_.output(), piece.data(), piece.size());
  if (count < 0) {
    if (errno == EAGAIN || errno == EINTR) return;
    fail("read from", command_);
  }
  std::string_view text(piece.data(), static_cast<std::size_t>(count));
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    unfinished_.append(text.substr(0, end));
    take(unfinished_);
    unfinished_.clear();
    text.remove_prefix(end + 1);
  }
  unfinished_.append(text);
  if (unfinished_.size() > longest_answer) take(unfinished_);  // refuses it
  ended_ = count == 0;
  if (!ended_) return;
  if (!unfinished_.empty()) take(std::exchange(unfinished_, {}));  // the last line lacks its end
  require_all();
}

// At the end of the output.
void answering_program::require_all() const {
  if (answered_ == sent_) return;
  const bool known = child_.wait(time_to_exit);
  if (app::stop_signal() != 0) throw app::interrupted();
  refuse("no answer" + next_line(), "one line per line of input",
         "the end of the output; the program " + (known ? child_.ending() : "is still running"),
         child_.exit_code() == 127 ? "the shell did not find the command" : "");
}

void answering_program::take(std::string_view answer) {
  if (pending_.empty()) {
    refuse("more answers than lines", app::count_text(sent_) + " lines of output",
           "'" + excerpt(answer) + "' after them", "the program must print nothing but answers");
  }
  lines& now = pending_.front();
  const bool is_lookup = now.verb == "has";
  if (answer != "0" && answer != "1" && (is_lookup || !answer.empty())) {
    refuse("wrong answer" + next_line(), is_lookup ? "0 or 1" : "0, 1 or an empty line", "'" + excerpt(answer) + "'",
           "the program must print nothing but answers");
  }
  if (is_lookup && answer == "1" && now.found != nullptr) ++*now.found;
  if (is_lookup && answer == "0" && now.found == nullptr && missing_.keys++ == 0) {
    missing_.first = now.copies[now.answered];
  }
  ++answered_;
  if (++now.answered == now.count) pending_.pop_front();
}

// " to line 12 (has ada)": the line that is to be answered next.
std::string answering_program::next_line() const {
  std::string text = " to line " + app::count_text(answered_ + 1);
  if (pending_.empty()) return text;
  const lines& now = pending_.front();
  if (now.verb == "add") return text + " (an add)";
  return fmt::format(
      "{} (has {})", text,
      excerpt(now.found == nullptr ? std::string_view(now.copies[now.answered]) : now.keys[now.answered]));
}

void answering_program::refuse(const std::string& what, const std::string& expected, const std::string& found,
                               const std::string& hint) const {
  throw error(errc::io, {what, "'" + excerpt(command_) + "'", expected, found, hint});
}

}  // namespace bloomery::cli
