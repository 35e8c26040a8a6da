// Benchmark of any_filter::open(): time_open FILTER [ROUNDS] measures cold and warm opens and the pages they read.
//
// Before a cold open the file is dropped from the page cache. Afterwards mincore() reports the pages in memory: those
// that open() read and those that the kernel read ahead. Prints one JSON object; its lists have one number per round:
//
//   bytes              file size
//   resident_before    pages in memory before a cold open; 0 unless the system kept some
//   cold_ns, warm_ns   times in nanoseconds
//   read, last_read    after the cold open: the number of pages in memory, and the index of the last one
#include <bloomery/any_filter.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

void check(bool success, const char* what) {
  if (!success) throw std::runtime_error(what);
}

// A file and the state of its pages in the page cache.
class cached_file {
 public:
  explicit cached_file(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat status {};
    check(fd_ >= 0 && ::fstat(fd_, &status) == 0 && status.st_size > 0, "cannot open the filter");
    bytes_ = static_cast<std::size_t>(status.st_size);
    at_ = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, fd_, 0);
    check(at_ != MAP_FAILED, "cannot map the filter");
  }
  cached_file(const cached_file&) = delete;
  cached_file& operator=(const cached_file&) = delete;
  ~cached_file() {
    ::munmap(at_, bytes_);
    ::close(fd_);
  }

  std::size_t bytes() const { return bytes_; }

  void drop_cache() const {
    check(::fdatasync(fd_) == 0, "cannot sync the filter");  // dirty pages would stay
    check(::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED) == 0, "cannot drop the filter from the page cache");
  }

  // The indices of the pages in memory.
  std::vector<std::uint64_t> resident() const {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> states((bytes_ + page - 1) / page);
    check(::mincore(at_, bytes_, states.data()) == 0, "cannot ask which pages are in memory");
    std::vector<std::uint64_t> pages;
    for (std::uint64_t i = 0; i < states.size(); ++i) {
      if ((states[i] & 1) != 0) pages.push_back(i);
    }
    return pages;
  }

 private:
  int fd_;
  std::size_t bytes_ = 0;
  void* at_ = nullptr;
};

std::uint64_t nanoseconds_to_open(const std::string& path) {
  const auto begin = std::chrono::steady_clock::now();
  const auto filter = bloomery::any_filter::open(path);
  const auto end = std::chrono::steady_clock::now();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(end - begin).count());
}

void print(const char* name, const std::vector<std::uint64_t>& numbers) {
  std::printf(",\"%s\":[", name);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::printf("%s%llu", i == 0 ? "" : ",", static_cast<unsigned long long>(numbers[i]));
  }
  std::printf("]");
}

void run(const std::string& path, int rounds) {
  const cached_file file(path);
  std::vector<std::uint64_t> resident_before, cold, read, last_read, warm;
  for (int round = 0; round < rounds; ++round) {
    file.drop_cache();
    resident_before.push_back(file.resident().size());
    cold.push_back(nanoseconds_to_open(path));
    const std::vector<std::uint64_t> pages = file.resident();
    read.push_back(pages.size());
    last_read.push_back(pages.empty() ? 0 : pages.back());
    warm.push_back(nanoseconds_to_open(path));
  }
  std::printf("{\"bytes\":%zu", file.bytes());
  print("resident_before", resident_before);
  print("cold_ns", cold);
  print("read", read);
  print("last_read", last_read);
  print("warm_ns", warm);
  std::printf("}\n");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 2) throw std::runtime_error("usage: time_open FILTER [ROUNDS]");
  run(argv[1], argc > 2 ? std::atoi(argv[2]) : 5);
} catch (const std::exception& e) {
  std::fprintf(stderr, "time_open: %s\n", e.what());
  return 1;
}
