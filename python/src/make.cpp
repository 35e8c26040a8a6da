// Parameters from keyword arguments, and the calls that make or open the filter of a new Handle.
#include "python/src/batches.hpp"
#include "python/src/calls.hpp"
#include "python/src/filter.hpp"

#include <bloomery/any_filter.hpp>
#include <bloomery/layered_filter.hpp>
#include <bloomery/rebuilding_filter.hpp>
#if BLOOMERY_WITH_REDIS
#include <bloomery/redis/handle.hpp>
#endif

#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace py = pybind11;

namespace bloomery::python {
namespace {

std::optional<secret_key> secret_of(const std::optional<py::bytes>& given) {
  if (!given) return std::nullopt;
  const std::string_view bytes = *given;
  secret_key key;
  static_assert(sizeof key == 16);  // k0, then k1, each little-endian
  if (bytes.size() != sizeof key) {
    throw error(errc::invalid_argument,
                {"a secret has another length", "secret", "16 bytes", std::to_string(bytes.size()), hint::none});
  }
  std::memcpy(&key, bytes.data(), sizeof key);
  return key;
}

params make_params(std::uint64_t capacity, double fpr, std::string layout, std::string scheme, std::string hash,
                   bool integers, std::uint64_t seed, const std::optional<py::bytes>& secret, std::uint64_t window_keys,
                   std::uint64_t window_ms) {
  params p;
  p.layout = std::move(layout);
  p.scheme = std::move(scheme);
  p.hash = std::move(hash);
  p.keys = integers ? key_kind::u64le : key_kind::bytes;
  p.seed = seed;
  p.capacity = capacity;
  p.target_fpr = fpr;
  p.secret = secret_of(secret);
  if (window_keys != 0) p.extra = window_of_keys(window_keys);
  if (window_ms != 0) p.extra = window_of_milliseconds(window_ms);
  return p;
}

preference preference_of(bool prefer_memory) { return prefer_memory ? preference::memory : preference::speed; }

// Makes a filter without the GIL and gives it to a Handle. A Handle that already has a filter is refused: other threads
// may use it.
template <class Make>
void fill(py::handle self, bool in_memory, Make make) {
  filter_state& f = state_of(self);
  const auto want_none = [&] {
    if (f.handle == nullptr) return;
    throw error(errc::invalid_argument, {"this object already has a filter", "", "", "", "make another object"});
  };
  want_none();
  std::unique_ptr<filter_handle> made;
  {
    const without_gil released;
    made = make();
  }
  want_none();  // another thread may have made one meanwhile
  f.take(std::move(made), in_memory);
}

void make(py::handle self, const params& p, bool prefer_memory) {
  fill(self, true, [&] { return make_handle(any_filter(complete(p, preference_of(prefer_memory)))); });
}

void make_scalable(py::handle self, const params& p) {
  fill(self, true, [&] { return make_scalable_handle(p); });
}

void create(py::handle self, const std::string& path, const params& p, bool prefer_memory, bool replace) {
  const create_options options{.replace = replace};
  fill(self, false,
       [&] { return make_handle(any_filter::create(path, complete(p, preference_of(prefer_memory)), options)); });
}

void create_rebuilding(py::handle self, const std::string& path, const params& p, bool replace) {
  const create_options options{.replace = replace};
  fill(self, false, [&] { return make_handle(rebuilding_filter::create(path, p, options), path); });
}

void open(py::handle self, const std::string& name, bool writable, const std::optional<py::bytes>& secret) {
  const access mode = writable ? access::read_write : access::read_only;
  const std::optional<secret_key> key = secret_of(secret);
  fill(self, false, [&] {
#if BLOOMERY_WITH_REDIS
    redis::open_options options;
    options.mode = mode;
    options.secret = key;
    return redis::open_filter(name, options);
#else
    return open_filter(name, {.mode = mode, .secret = key});
#endif
  });
}

void load(py::handle self, const std::string& path, const std::optional<py::bytes>& secret) {
  const std::optional<secret_key> key = secret_of(secret);
  fill(self, true, [&] { return make_handle(any_filter::load(path, {.secret = key})); });
}

void from_bytes(py::handle self, const py::buffer& bytes, const std::optional<py::bytes>& secret) {
  const std::optional<secret_key> key = secret_of(secret);
  const py::bytes copy = py::reinterpret_steal<py::bytes>(PyBytes_FromObject(bytes.ptr()));  // others cannot change it
  if (!copy) throw py::error_already_set();
  const std::string_view file = copy;
  const std::span given(reinterpret_cast<const std::uint8_t*>(file.data()), file.size());
  fill(self, true, [&] { return make_handle(any_filter::from_bytes(given, {.secret = key})); });
}

// Keys become hashes of 8 bytes as they come, so that no key is kept.
void build_static(py::handle self, const params& p, py::handle keys, unsigned width, bool ribbon, unsigned threads) {
  params hashing = p;
  hashing.layout.clear();
  hashing.capacity = 1;
  hashing.target_fpr = 0.5;
  const any_filter hasher(rebuilding_filter::completed(hashing));
  std::vector<std::uint64_t> hash64s;
  std::vector<key_hash> hashes;
  for_each_part(keys, p.keys, [&](key_span some) {
    const without_gil released;
    hashes.resize(std::max(hashes.size(), some.size()));
    hasher.hash(some, hashes);
    for (std::size_t i = 0; i < some.size(); ++i) hash64s.push_back(hashes[i].hash64);
  });
  fill(self, true, [&] {
    return make_handle(any_filter::build_static(hasher.parameters(), key_span::of_hash64s(hash64s), width, threads,
                                                ribbon ? static_structure::ribbon : static_structure::fuse));
  });
}

#if BLOOMERY_WITH_REDIS
void create_on_server(py::handle self, const std::string& address, const params& p, const std::string& growth,
                      std::uint64_t maximum, std::uint64_t expires_ms) {
  redis_params wanted;
  wanted.filter = p;
  wanted.filter.secret.reset();
  if (growth == "unlimited") wanted.growth = redis_growth::unlimited;
  if (growth == "to_maximum") wanted.growth = redis_growth::to_maximum;
  wanted.maximum = maximum;
  if (expires_ms != 0) wanted.expires_in = std::chrono::milliseconds(expires_ms);
  redis_options options;
  options.secret = p.secret;
  fill(self, false, [&] {
    return redis::make_handle(redis_filter::create(redis_address::parse(address), wanted, std::move(options)));
  });
}

bool drop_on_server(const std::string& address) {
  const without_gil released;
  return redis_filter::drop(redis_address::parse(address));
}
#endif

}  // namespace

void add_makers(py::module_& m, const py::object& type) {
  py::class_<params>(m, "Params")
      .def_readonly("layout", &params::layout)
      .def_readonly("scheme", &params::scheme)
      .def_readonly("hash", &params::hash)
      .def_readonly("seed", &params::seed)
      .def_readonly("capacity", &params::capacity)
      .def_readonly("fpr", &params::target_fpr)
      .def_property_readonly("class_name", [](const params& p) { return class_of(p); })
      .def_property_readonly("integers", [](const params& p) { return p.keys == key_kind::u64le; })
      .def_property_readonly("bits", [](const params& p) { return p.geometry.bits; })
      .def_property_readonly("probes", [](const params& p) { return p.geometry.probes; });
  m.def("params", make_params, py::arg("capacity"), py::arg("fpr"), py::arg("layout"), py::arg("scheme"),
        py::arg("hash"), py::arg("integers"), py::arg("seed"), py::arg("secret"), py::arg("window_keys"),
        py::arg("window_ms"));
  const auto add = [&](const char* name, auto function) {
    type.attr(name) = py::cpp_function(function, py::name(name), py::is_method(type));
  };
  add("_make", make);
  add("_make_scalable", make_scalable);
  add("_create", create);
  add("_create_rebuilding", create_rebuilding);
  add("_open", open);
  add("_load", load);
  add("_from_bytes", from_bytes);
  add("_build_static", build_static);
#if BLOOMERY_WITH_REDIS
  add("_create_on_server", create_on_server);
  m.def("drop_on_server", drop_on_server);
#endif
}

}  // namespace bloomery::python
