// Objects of Perl's Bloom::Filter in files of Storable: files that Perl wrote (tests/golden/foreign/record.sh), files
// of other machines, and files that are damaged or have other values.
#include <bloomery/any_filter.hpp>
#include <bloomery/detail/bits.hpp>
#include <bloomery/filter_handle.hpp>
#include <bloomery/formats.hpp>
#include <bloomery/scheme.hpp>

#include "formats/recorded.hpp"
#include "support/test.hpp"

#include <map>

namespace bloomery {
namespace {

using namespace bloomery_tests;

// ---- files that Perl wrote ------------------------------------------------------------------------------------------

constexpr const char* forms[] = {"perl", "perl_store", "perl_freeze", "perl_nfreeze"};

TEST(PerlFile, OfEachFunctionOfStorableHasTheSameFilter) {
  const any_filter first = import_filter(recorded("perl.filter"));
  for (const char* const form : forms) {
    const std::string path = recorded(form + ".filter"s);

    const any_filter filter = import_filter(path);

    EXPECT_EQ(recognize_format(path), find_file_format("perl")) << form;
    EXPECT_TRUE(filter == first) << form;
    EXPECT_EQ(filter.parameters(), first.parameters()) << form;
  }
  const params& p = first.parameters();
  EXPECT_EQ(p.scheme, "perl");
  EXPECT_EQ(p.geometry, (geometry{3838, 7}));
  EXPECT_EQ(p.capacity, 400u);
  EXPECT_EQ(p.target_fpr, 0.01);
  EXPECT_EQ(p.salts().size(), 7u);
  EXPECT_EQ(first.insert_count(), 303u);
  EXPECT_TRUE(first.count_is_estimate());
}

TEST(PerlFile, AnswersAsBloomFilter) {
  const auto handle = open_filter(recorded("perl.filter"));
  for (const std::string& key : inserted_keys()) EXPECT_TRUE(handle->contains(key)) << key;

  EXPECT_EQ(positives_of(*handle), content_of(recorded("perl.positives")));
}

TEST(PerlFile, IsWrittenAsByNstoreWithSortedFields) {
  for (const char* const form : forms) {
    export_filter(import_filter(recorded(form + ".filter"s)), "again.storable", "perl");

    EXPECT_EQ(content_of("again.storable"), content_of(recorded("perl.filter"))) << form;
  }
}

TEST(PerlFile, OfTheSameKeysHasTheSameBytesIfItsSaltsAreKnown) {
  params p = import_filter(recorded("perl.filter")).parameters();
  p.geometry = {};
  p.geometry.bits = find_scheme("perl")->geometry_for(400, 0.01).bits;
  p.geometry.probes = 7;
  any_filter filter(complete(p));
  for (const std::string& key : inserted_keys()) filter.insert(key);

  EXPECT_TRUE(filter == import_filter(recorded("perl.filter")));
}

TEST(PerlFile, GivesAFilterThatKeepsItsSaltsInAFile) {
  const any_filter from = import_filter(recorded("perl.filter"));
  from.save("own.bloom");

  any_filter own = any_filter::load("own.bloom");

  EXPECT_EQ(own.parameters(), from.parameters());
  EXPECT_EQ(positives_of(*open_filter("own.bloom")), content_of(recorded("perl.positives")));
  own.insert("Madrid");
  EXPECT_TRUE(own.may_contain("Madrid"));
}

TEST(PerlFile, CanBeMergedWithAFilterOfTheSameSaltsOnly) {
  any_filter own = import_filter(recorded("perl.filter")).clone();
  const any_filter same = own.clone();
  const any_filter fixed(params{.scheme = "perl", .geometry = own.parameters().geometry});
  params p = own.parameters();
  std::vector<std::string> other(p.salts().begin(), p.salts().end());
  other[6] = "0.5";
  p.extra = salt_list{other};

  own.merge(same);

  EXPECT_TRUE(own == same);
  EXPECT_ERROR(own.merge(fixed), errc::incompatible, "salt 1: ");
  EXPECT_ERROR(own.merge(any_filter(p)), errc::incompatible, "and '0.5'");
  EXPECT_EQ(difference(params{.scheme = "perl", .geometry = {100, 1}},
                       params{.scheme = "perl", .geometry = {100, 1}, .extra = salt_list{{""}}}),
            "salt 1: none and ''");
  EXPECT_EQ(difference(params{.scheme = "perl", .geometry = {100, 2}, .extra = salt_list{{"1", {"a\0b", 3}}}},
                       params{.scheme = "perl", .geometry = {100, 2}, .extra = salt_list{{"1", {"a\0c", 3}}}}),
            "salt 2: 'a\\x00b' and 'a\\x00c'");
}

TEST(PerlFile, OfAFilterOfThisLibraryHasTheSaltsOfItsSeed) {
  for (const std::uint64_t seed : {0u, 42u}) {
    any_filter filter(complete({.scheme = "perl", .seed = seed, .capacity = 100, .target_fpr = 0.05}));
    filter.insert("Madrid");

    export_filter(filter, "own.storable", "perl");

    const any_filter again = import_filter("own.storable");
    EXPECT_TRUE(again.may_contain("Madrid"));
    EXPECT_TRUE(std::ranges::equal(again.bytes(), filter.bytes()));
    if (seed == 0)
      EXPECT_TRUE(again == filter);
    else
      EXPECT_EQ(again.parameters().salts()[1], "42.1");
  }
}

TEST(PerlFile, HasNoFilterOfUnknownCapacity) {
  const any_filter unknown(params{.scheme = "perl", .geometry = {100, 3}});

  EXPECT_ERROR(export_filter(unknown, "no.storable", "perl"), errc::incompatible, "capacity");
}

TEST(PerlFile, IsReadWhateverTheNumberOfBits) {
  for (const std::uint64_t bits : {1u, 7u, 8u, 9u, 2040u, 2041u, 2048u, 2049u, 100'003u}) {
    for (const std::uint64_t capacity :
         {std::uint64_t{1}, std::uint64_t{128}, std::uint64_t{1} << 31, std::uint64_t{1} << 53}) {
      any_filter filter(params{.scheme = "perl", .geometry = {bits, 3}, .capacity = capacity, .target_fpr = 1.0 / 3});
      filter.insert("Madrid");

      export_filter(filter, "some.storable", "perl");

      EXPECT_EQ(import_filter("some.storable").parameters(), filter.parameters()) << bits << " bits";
      EXPECT_TRUE(import_filter("some.storable") == filter) << bits << " bits";
    }
  }
}

// ---- files of other machines ----------------------------------------------------------------------------------------

// A file of Storable, written by hand.
struct storable_writer {
  bool big_endian = true;
  std::string bytes = {};

  storable_writer& raw(std::string_view text) {
    bytes += text;
    return *this;
  }
  storable_writer& number(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> 8 * (big_endian ? size - 1 - i : i));
    return *this;
  }
  storable_writer& text(std::string_view value) {
    bytes += '\x0A';
    bytes += static_cast<char>(value.size());
    return raw(value);
  }
  storable_writer& key(std::string_view name) { return number(name.size(), 4).raw(name); }
};

// The fields of a filter of 24 bits and 2 salts that contains "Madrid".
std::map<std::string, std::string> fields_of(bool big_endian) {
  const auto value = [&] { return storable_writer{big_endian}; };
  any_filter filter(params{.scheme = "perl", .geometry = {24, 2}, .extra = salt_list{{"0.25", "s"}}});
  filter.insert("Madrid");
  const std::string bits(reinterpret_cast<const char*>(filter.bytes().data()), 3);
  return {{"blankvec", value().text("\0\0\0\0"s).bytes},
          {"capacity", value().text("10").bytes},
          {"error_rate", value().text("0.125").bytes},
          {"filter", value().text(bits).bytes},
          {"filter_length", value().raw("\x08\x98").bytes},
          {"key_count", value().raw("\x08\x81").bytes},
          {"num_hash_funcs", value().raw("\x08\x82").bytes},
          {"salts", value().raw("\4\2").number(2, 4).text("0.25").text("s").bytes}};
}

const std::string network = "pst0\5\x0B";
const std::string object =
    "\x11\x0D"
    "Bloom::Filter";

std::string file_of(const std::string& head, bool big_endian, const std::map<std::string, std::string>& fields) {
  storable_writer file{big_endian, head + "\3"};
  file.number(fields.size(), 4);
  for (const auto& [name, value] : fields) file.raw(value).key(name);
  return file.bytes;
}

any_filter import_text(const std::string& text) {
  write_file("some.storable", text);
  return import_filter("some.storable");
}

TEST(StorableFile, OfOtherMachinesIsRead) {
  const any_filter expected = import_text(file_of(network + object, true, fields_of(true)));
  EXPECT_TRUE(expected.may_contain("Madrid"));
  EXPECT_EQ(expected.parameters(), (params{.scheme = "perl",
                                           .geometry = {24, 2},
                                           .capacity = 10,
                                           .target_fpr = 0.125,
                                           .extra = salt_list{{"0.25", "s"}}}));
  for (const std::string order : {"1234", "4321", "12345678", "87654321"}) {
    const bool big_endian = order[0] > '1';
    const std::string head = "\4\x0B" + std::string(1, static_cast<char>(order.size())) + order + "\4\4\4\x08";
    const int size = static_cast<int>(order.size());
    const auto value = [&] { return storable_writer{big_endian}; };
    auto fields = fields_of(big_endian);
    fields["capacity"] = value().raw("\6").number(10, size).bytes;                            // an integer
    fields["error_rate"] = value().raw("\7").number(0x3FC0'0000'0000'0000, 8).bytes;          // 0.125
    fields["filter"] = value().raw("\1").number(3, 4).raw(fields["filter"].substr(2)).bytes;  // a long string
    fields["salts"] = value().raw("\4\2").number(2, 4).raw("\7").number(0x3FD0'0000'0000'0000, 8).text("s").bytes;

    for (const std::string& start : {"pst0" + head + object, head + "\4\4" + object}) {
      const any_filter filter = import_text(file_of(start, big_endian, fields));

      EXPECT_TRUE(filter == expected) << order;
      EXPECT_EQ(filter.parameters(), expected.parameters()) << order;
    }
  }
}

TEST(StorableFile, MayHaveOtherFieldsAndFlags) {
  const any_filter expected = import_text(file_of(network + object, true, fields_of(true)));
  auto fields = fields_of(true);
  const auto value = [] { return storable_writer{}; };
  fields["a"] = value().raw("\4\3").number(1, 4).raw("\5").key("undefined").bytes;
  fields["b"] = value().raw("\4\2").number(3, 4).raw("\x0E\x0F\x10").bytes;
  fields["c"] = value().raw("\4\x11\1X\3").number(0, 4).bytes;          // an object
  fields["d"] = value().raw("\4\x12").raw("\0\2"s).number(0, 4).bytes;  // another of the same class
  fields["e"] = value().raw("\0"s).number(1, 4).bytes;                  // the same as before
  fields["f"] = "\x14\5";                                               // references with operators, and weak ones
  fields["g"] = "\x1B\5";
  fields["h"] = "\x1C\5";
  fields["i"] =
      "\x1D\3"
      "1.2"
      "\x0A\2\1\2";  // versions
  fields["j"] = value().raw("\x1E").number(3, 4).raw("1.2").text("\1\2").bytes;
  fields["k"] = "\x20\0\2^a\1i"s;  // regular expressions
  fields["l"] = value().raw("\x20\1").number(2, 4).raw("^a").raw("\0"s).bytes;
  fields["m"] = value().raw("\4\2").number(2, 4).raw("\x22\x23").bytes;  // booleans
  fields["z"] = value().raw("\x17\2\xC3\xA9").bytes;                     // UTF-8

  EXPECT_TRUE(import_text(file_of(network + object, true, fields)) == expected);

  fields["salts"] = value()
                        .raw("\4\2")
                        .number(2, 4)
                        .raw(
                            "\x17\4"
                            "0.25")
                        .raw("\x18")
                        .number(1, 4)
                        .raw("s")
                        .bytes;
  storable_writer flagged{true, network + object + "\x19"};
  flagged.raw("\0"s).number(fields.size(), 4);
  for (const auto& [name, of_name] : fields) flagged.raw(of_name).raw("\0"s).key(name);
  EXPECT_TRUE(import_text(flagged.bytes) == expected);
}

TEST(StorableFile, HasNumbersAsPerlConvertsThem) {
  const auto with = [](const char* name, const std::string& value) {
    auto fields = fields_of(true);
    fields[name] = value;
    return import_text(file_of(network + object, true, fields)).parameters();
  };
  const auto text = [](std::string_view value) { return storable_writer{}.text(value).bytes; };

  EXPECT_EQ(with("capacity", text("1200.5")).capacity, 1201u);  // Bloom::Filter adds 1201 keys
  EXPECT_EQ(with("capacity", text("1e6")).capacity, 1'000'000u);
  EXPECT_EQ(with("error_rate", text("1e-05")).target_fpr, 1e-5);
  const std::string list = storable_writer{}.raw("\4\2").number(2, 4).raw("\x08\x7F\x09").number(70'000, 4).bytes;
  EXPECT_EQ(with("salts", list).extra, extra_params(salt_list{{"-1", "70000"}}));
  const std::string fixed = storable_writer{}.raw("\4\2").number(2, 4).raw("\x08\x80\x08\x81").bytes;
  EXPECT_EQ(with("salts", fixed).extra, extra_params());  // those of seed 0
}

// ---- files that are refused -----------------------------------------------------------------------------------------

TEST(StorableFile, WithAFieldThatDoesNotFitIsRefused) {
  const auto text = [](std::string_view value) { return storable_writer{}.text(value).bytes; };
  const auto list = [](std::uint64_t count) {
    storable_writer value;
    value.raw("\4\2").number(count, 4);
    for (std::uint64_t i = 0; i < count; ++i) value.raw("\x08\x80");
    return value.bytes;
  };
  const struct {
    const char* name;
    std::string value;
    const char* words;
  } changes[] = {
      {"blankvec", text("\0\0\0\1"s), "blankvec"},
      {"blankvec", text(""), "blankvec"},
      {"capacity", text("0"), "capacity"},
      {"capacity", text("-1"), "capacity"},
      {"capacity", text("nan"), "capacity"},
      {"capacity", text("1e300"), "capacity"},
      {"capacity", text("10 x"), "found '10 x'"},
      {"capacity", text(std::string(200, '1')), "capacity"},
      {"capacity", "\5", "field capacity: expected a string or a number, found undef"},
      {"error_rate", "\4\5", "field error_rate: expected a string or a number, found a reference"},
      {"error_rate", text("0"), "error_rate"},
      {"error_rate", text("1"), "error_rate"},
      {"filter", text("12"), "length of filter: expected 3 bytes"},
      {"filter", text("1234"), "length of filter"},
      {"filter", "\x08\x80", "a string"},
      {"filter", "\x17\x02\xC3\xBC", "field filter has characters beyond ASCII"},
      {"filter_length", "\x08\x80", "filter_length"},
      {"filter_length", "\x08\x99", "length of filter"},
      {"filter_length", text("4294967297"), "filter_length"},
      {"filter_length", text("23.5"), "filter_length: expected an integer"},
      {"key_count", "\x08\x7F", "key_count"},
      {"num_hash_funcs", "\x08\x83", "num_hash_funcs: expected 2, found 3"},
      {"salts", text("0.25"), "field salts: expected a reference to an array, found a string"},
      {"salts", "\4\3\0\0\0\0"s, "field salts: expected a reference to an array, found a reference to a hash"},
      {"salts", list(0), "number of values in salts"},
      {"salts", list(256), "number of values in salts: expected 1 to 255, found 256"},
      {"capacity",
       "\x1D\3"
       "1.2"
       "\x0A\2\1\2",
       "expected a string or a number, found a version"},
      {"salts", "\4\4\5", "expected a reference to an array, found a reference to a reference"},
      {"salts", "\x1B\2\0\0\0\0"s, "expected a reference to an array, found a weak reference"},
      {"z", "\x1E\xFF\xFF\xFF\xFF", "truncated"},
      {"z", "\x20\1\xFF\xFF\xFF\xFF", "truncated"},
      {"z", "\x1A", "code"},
      {"z", "\x0B", "tied"}};
  for (const auto& [name, value, words] : changes) {
    auto fields = fields_of(true);
    fields[name] = value;
    write_file("some.storable", file_of(network + object, true, fields));
    const auto thrown = error_of([] { import_filter("some.storable"); });
    ASSERT_TRUE(thrown.has_value()) << name << ": " << words;
    EXPECT_TRUE(thrown->code() == errc::damaged || thrown->code() == errc::incompatible) << thrown->what();
    EXPECT_THAT(thrown->what(), HasSubstr(words)) << name;
    EXPECT_THAT(thrown->what(), HasSubstr("some.storable"));
  }
  for (const auto& [name, value] : fields_of(true)) {
    auto fields = fields_of(true);
    fields.erase(name);
    EXPECT_ERROR(import_text(file_of(network + object, true, fields)), errc::damaged,
                 "a field is missing: expected " + name);
  }
}

TEST(StorableFile, WithSetBitsBeyondItsLengthIsRefused) {
  auto fields = fields_of(true);
  fields["filter"] = storable_writer{}.text("\0\0\x80"s).bytes;
  EXPECT_NO_THROW(import_text(file_of(network + object, true, fields)));

  fields["filter_length"] = "\x08\x97";

  EXPECT_ERROR(import_text(file_of(network + object, true, fields)), errc::damaged, "unused bits");
}

TEST(StorableFile, OfAnotherLengthIsRefused) {
  for (const char* const form : forms) {
    const std::string whole = content_of(recorded(form + ".filter"s));
    for (std::size_t length = 0; length < whole.size(); length += length < 64 ? 1 : 7) {
      write_file("cut", whole.substr(0, length));
      ASSERT_TRUE(error_of([] { import_filter("cut"); }).has_value()) << form << ", " << length;
    }
    write_file("cut", whole + '\0');
    EXPECT_ERROR(import_filter("cut"), errc::damaged, "the file is too long");
  }
}

TEST(StorableFile, WithoutABloomFilterIsRefusedByName) {
  const std::string body = file_of("", true, fields_of(true));
  EXPECT_ERROR(import_text(network + "\x11\3Set" + body), errc::incompatible,
               "expected an object of Bloom::Filter, found Set");
  EXPECT_ERROR(import_text(network + body), errc::incompatible, "another value");
  EXPECT_ERROR(import_text(network + "\4\2"), errc::incompatible, "another value");
  EXPECT_ERROR(import_text(network + object + "\2" + "\0\0\0\0"s), errc::damaged, "expected a hash");
  EXPECT_ERROR(import_text("pst0\3\x0B" + object + body), errc::damaged, "version of Storable");
  EXPECT_ERROR(import_text("pst0\4\1" + object + body), errc::damaged, "minor version of Storable");
  EXPECT_ERROR(import_text("pst0\4\x0B\4"
                           "2143"
                           "\4\4\4\x08" +
                           object + body),
               errc::damaged, "order of bytes");
  EXPECT_ERROR(import_text("pst0\4\x0B\4"
                           "1234"
                           "\2\4\4\x08" +
                           object + body),
               errc::damaged, "size of integers");
  write_file("text", "\5Madrid\n");
  EXPECT_EQ(recognize_format("text"), nullptr);
}

TEST(StorableFile, WithDeepOrRepeatedValuesIsRefused) {
  auto fields = fields_of(true);
  fields["z"] = std::string(1'000'000, '\4');
  EXPECT_ERROR(import_text(file_of(network + object, true, fields)), errc::damaged, "values within values");
  storable_writer file{true, network + object + "\3"};
  file.number(2, 4).text("1").key("capacity").text("1").key("capacity");
  EXPECT_ERROR(import_text(file.bytes), errc::damaged, "field capacity occurs twice");
  fields["z"] = storable_writer{}.raw("\4\2").number(0xFFFF'FFFF, 4).bytes;  // takes no memory
  EXPECT_ERROR(import_text(file_of(network + object, true, fields)), errc::damaged, "");
}

TEST(StorableFile, WithSaltsThatNoFileOfThisLibraryHoldsIsRefused) {
  auto fields = fields_of(true);
  fields["salts"] =
      storable_writer{}.raw("\4\2").number(2, 4).raw("\1").number(256, 4).raw(std::string(256, 'x')).text("s").bytes;

  EXPECT_ERROR(import_text(file_of(network + object, true, fields)), errc::incompatible,
               "the salts are too long: expected at most 255 bytes each, 3008 in all, found 256 bytes in a salt");

  fields["salts"] = storable_writer{}.raw("\4\2").number(2, 4).raw("\x17\2\xC3\xA9").text("s").bytes;
  EXPECT_ERROR(import_text(file_of(network + object, true, fields)), errc::incompatible, "beyond ASCII");
}

}  // namespace
}  // namespace bloomery
