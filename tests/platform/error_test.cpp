// Errors carry codes, fields and hints for programs, and sentences without any option or command for people; the front
// end of the command words the hints' codes.
#include <bloomery/any_filter.hpp>
#include <bloomery/filter.hpp>
#include <bloomery/fold.hpp>
#include <bloomery/rebuilding_filter.hpp>
#include <bloomery/secret.hpp>

#include "cli/text/error_text.hpp"
#include "support/test.hpp"

#include <cctype>
#include <fstream>
#include <iterator>
#include <ostream>
#include <regex>
#include <set>

namespace bloomery {
namespace {

using testing::AnyOf;
using namespace bloomery_tests;
using testing::Not;

// An option, or a verb of the command behind its name.
bool names_the_command(const std::string& text) {
  static const std::regex option("(^|[^a-z0-9-])(--[a-z]|-[nmpkojt]([^a-z]|$))");
  static const std::regex verb(
      "bloomery "
      "(plan|build|add|check|remove|dedup|info|verify|explain|analyze|overlap|union|intersect|fold|keygen|noisy|"
      "split|rebuild|seal|pull|push|redis|doctor|playground)|"
      "(^|[^a-z])build -");
  // A check value's seed in secret.cpp, which no user sees.
  return std::regex_search(text, option) || (text != "bloomery key check" && std::regex_search(text, verb));
}

TEST(Error, JoinsItsPartsToOneSentence) {
  const error all(errc::damaged, {"file is cut short", "users.bloom", "8192 bytes", "5000", hint::restore_file});
  const error without_where(errc::locked, {"busy", "", "", "", hint::try_again});
  const error only_found(errc::io, {"cannot read", "f", "", "nothing", {}});
  const error particular(errc::io, {"cannot read", "f", "", "", {hint::try_again, "try again tomorrow"}});

  EXPECT_STREQ(
      all.what(),
      "users.bloom: file is cut short: expected 8192 bytes, found 5000; restore the file from a copy or build it "
      "again");
  EXPECT_STREQ(without_where.what(), "busy; try again");
  EXPECT_STREQ(only_found.what(), "f: cannot read: found nothing");
  EXPECT_STREQ(particular.what(), "f: cannot read; try again tomorrow");
  EXPECT_EQ(particular.text().hint.code, hint::try_again);
}

TEST(Error, HasAHintOfItsOwnWordsWithoutACode) {
  const error_hint words("look again");

  EXPECT_EQ(words.code, hint::none);
  EXPECT_EQ(words.words(), "look again");
  EXPECT_FALSE(words.empty());
  EXPECT_TRUE(error_hint().empty());
  EXPECT_TRUE(error_hint("").empty());
  EXPECT_TRUE(error_hint(hint::none).empty());
}

TEST(Error, HasANameForEachCode) {
  EXPECT_STREQ(name_of(errc::invalid_argument), "invalid_argument");
  EXPECT_STREQ(name_of(errc::damaged), "damaged");
  EXPECT_STREQ(name_of(errc::unavailable), "unavailable");
}

TEST(Hint, HasANameAndASentenceForEachCode) {
  std::set<std::string> names;
  std::set<std::string> sentences;
  for (const hint h : all_hints()) {
    const std::string name = name_of(h);
    const std::string sentence = sentence_of(h);
    EXPECT_TRUE(std::regex_match(name, std::regex("[a-z]+(_[a-z]+)+"))) << name;
    ASSERT_THAT(sentence, Not(IsEmpty())) << name;
    EXPECT_TRUE(std::islower(static_cast<unsigned char>(sentence[0])) || sentence.starts_with("BLOOMERY")) << sentence;
    EXPECT_THAT(sentence.back(), Not(AnyOf('.', '?', ';', ' '))) << sentence;
    EXPECT_FALSE(names_the_command(sentence)) << sentence;
    names.insert(name);
    sentences.insert(sentence);
  }
  EXPECT_EQ(names.size(), all_hints().size());
  EXPECT_EQ(sentences.size(), all_hints().size());
  EXPECT_STREQ(name_of(hint::none), "");
  EXPECT_STREQ(sentence_of(hint::none), "");
  EXPECT_EQ(static_cast<std::size_t>(all_hints().back()), all_hints().size());
}

// What the library refuses, with the code, the place and the hint that a program gets.
struct refusal {
  const char* name;
  std::function<void(const std::string& folder)> action;
  errc code;
  std::string where;  // behind the folder
  hint to_do;

  friend void PrintTo(const refusal& r, std::ostream* out) { *out << r.name; }
};

class Refusals : public testing::TestWithParam<refusal> {};

TEST_P(Refusals, HasCodeFieldAndHint) {
  const scratch_folder folder;
  const refusal& r = GetParam();

  const std::optional<error> e = error_of([&] { r.action(folder / ""); });

  ASSERT_TRUE(e) << "nothing was thrown";
  EXPECT_EQ(e->code(), r.code) << e->what();
  EXPECT_TRUE(e->text().where == r.where || e->text().where == folder / r.where) << e->text().where;
  EXPECT_EQ(e->text().hint.code, r.to_do) << name_of(e->text().hint.code);
  EXPECT_FALSE(names_the_command(e->what())) << e->what();
}

params small() { return {.capacity = 100, .target_fpr = 0.01}; }

const refusal refusals[] = {
    {"RateOutOfRange", [](const std::string&) { filter<>(1000, 1.5); }, errc::invalid_argument, "rate", hint::none},
    {"NoSuchKeyedSecret", [](const std::string&) { complete({.hash = "siphash", .capacity = 10, .target_fpr = 0.01}); },
     errc::invalid_argument, "siphash", hint::give_a_secret},
    {"SecretForAHashWithout",
     [](const std::string&) {
       complete({.hash = "xxh3", .capacity = 10, .target_fpr = 0.01, .secret = random_secret()});
     },
     errc::invalid_argument, "xxh3", hint::leave_out_secret_or_hash},
    {"KeyedFileWithoutSecret",
     [](const std::string& f) {
       params p = small();
       p.hash = "siphash";
       p.secret = random_secret();
       any_filter(p).save(f + "keyed");
       any_filter::open(f + "keyed");
     },
     errc::incompatible, "keyed", hint::give_the_secret},
    {"SecretForAPlainFile",
     [](const std::string& f) {
       any_filter(small()).save(f + "plain");
       any_filter::load(f + "plain", {.secret = random_secret()});
     },
     errc::incompatible, "plain", hint::leave_out_the_secret},
    {"InsertIntoAReadOnlyFile",
     [](const std::string& f) {
       any_filter(small()).save(f + "plain");
       any_filter::open(f + "plain").insert("key");
     },
     errc::not_permitted, "", hint::open_read_write},
    {"RemovalFromBits", [](const std::string&) { any_filter(small()).remove("key"); }, errc::incompatible, "",
     hint::make_counting_filter},
    {"TextInsteadOfAFilter",
     [](const std::string& f) {
       std::ofstream(f + "text") << std::string(5000, 'x');
       any_filter::open(f + "text");
     },
     errc::not_a_filter, "text", hint::make_a_filter},
    {"TextInsteadOfASecret",
     [](const std::string& f) {
       std::ofstream(f + "text") << "no key\n";
       read_secret(f + "text");
     },
     errc::invalid_argument, "text", hint::give_a_key_file},
    {"FoldingTooOften",
     [](const std::string&) {
       folded(complete({.layout = "split_block", .geometry = {512, 8}, .capacity = 10}), 30);
     },
     errc::invalid_argument, "fold", hint::make_foldable_filter},
    {"StaticFilterWithoutKeys",
     [](const std::string&) { complete({.layout = "fuse8", .capacity = 10, .target_fpr = 0.01}); },
     errc::invalid_argument, "layout", hint::seal_all_keys},
    {"NoLog",
     [](const std::string& f) {
       any_filter(small()).save(f + "plain");
       rebuilding_filter::open(f + "plain", {.mode = access::read_write});
     },
     errc::incompatible, "plain", hint::make_filter_with_log},
    {"LogMissing",
     [](const std::string& f) {
       { rebuilding_filter::create(f + "grown", small()); }
       std::filesystem::remove(f + "grown.log");
       rebuilding_filter::open(f + "grown", {.mode = access::read_write});
     },
     errc::not_found, "grown.log", hint::bring_back_log},
    {"LogOfAnotherFilter",
     [](const std::string& f) {
       { rebuilding_filter::create(f + "one", small()); }
       { rebuilding_filter::create(f + "other", small()); }
       std::filesystem::rename(f + "other.log", f + "one.log");
       rebuilding_filter::open(f + "one", {.mode = access::read_write});
     },
     errc::incompatible, "one.log", hint::bring_back_own_log},
    {"LogOfAFilterThatIsGone",
     [](const std::string& f) {
       { rebuilding_filter::create(f + "grown", small()).insert("key"); }
       std::filesystem::remove(f + "grown");
       rebuilding_filter::create(f + "grown", small(), {.replace = false});
     },
     errc::already_exists, "grown.log", hint::rebuild_from_log},
};

INSTANTIATE_TEST_SUITE_P(Library, Refusals, testing::ValuesIn(refusals),
                         [](const auto& each) { return std::string(each.param.name); });

// ---- the command's words --------------------------------------------------------------------------------------------

std::string words_for(hint h, const std::string& where) {
  return cli::hint_text(error(errc::io, {"it failed", where, "", "", h}));
}

TEST(HintText, NamesOptionsAndCommands) {
  EXPECT_THAT(words_for(hint::give_the_secret, "f"), HasSubstr("--secret KEYFILE"));
  EXPECT_THAT(words_for(hint::make_counting_filter, ""), HasSubstr("bloomery build --counting"));
  EXPECT_THAT(words_for(hint::make_shared_filter, "redis://h/f"), HasSubstr("bloomery build -o redis://h/f -n NUMBER"));
  EXPECT_THAT(words_for(hint::bring_back_log, "a.log"), HasSubstr("bloomery union -o COPY a a"));
  EXPECT_THAT(words_for(hint::bring_back_own_log, "a.log"), HasSubstr("bloomery rebuild a --salvage"));
  EXPECT_THAT(words_for(hint::rebuild_from_log, "a.log.log"), HasSubstr("bloomery rebuild a.log"));
  EXPECT_EQ(words_for(hint::try_again, "f"), "try again");
  EXPECT_EQ(words_for(hint::none, "f"), "");
}

TEST(HintText, EndsTheSentenceAndReplacesOnlyTheHint) {
  const error keyed(errc::incompatible, {"the filter is keyed", "f", "a key", "none", hint::give_the_secret});
  const error own(errc::io, {"it failed", "f", "", "", "look at line 3"});

  EXPECT_EQ(cli::sentence_of(keyed),
            "f: the filter is keyed: expected a key, found none; give the secret of the filter: --secret KEYFILE");
  EXPECT_EQ(cli::sentence_of(own), own.what());
}

// ---- the library's source -------------------------------------------------------------------------------------------

// The string literals of a line: outside comments, with escapes as they are written.
std::vector<std::string> literals_of(const std::string& line) {
  std::vector<std::string> all;
  std::optional<std::string> now;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (now && c == '\\') {
      *now += line.substr(i++, 2);
    } else if (c == '"') {
      if (now) all.push_back(*now);
      now = now ? std::nullopt : std::optional<std::string>("");
    } else if (now) {
      *now += c;
    } else if (c == '/' && i + 1 < line.size() && line[i + 1] == '/') {
      break;
    } else if (c == '\'') {
      i += i + 1 < line.size() && line[i + 1] == '\\' ? 3 : i + 2 < line.size() && line[i + 2] == '\'' ? 2 : 0;
    }
  }
  return all;
}

TEST(Source, ItsLiteralsAreFound) {
  EXPECT_EQ(literals_of(R"(f("a", '"', "b\"c", 1'000); // "d")"), (std::vector<std::string>{"a", "b\\\"c"}));
  EXPECT_TRUE(names_the_command("give its key: --secret KEYFILE"));
  EXPECT_TRUE(names_the_command("see bloomery redis doctor"));
  EXPECT_TRUE(names_the_command("build it again (-m)"));
  EXPECT_FALSE(names_the_command("not a bloomery filter: a well-made one"));
}

TEST(Source, NoLiteralOfTheLibraryNamesAnOptionOrACommand) {
  std::size_t literals = 0;
  for (const char* folder : {"/include", "/src"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(BLOOMERY_SOURCE_DIR + std::string(folder))) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path());
      int number = 0;
      for (std::string line; std::getline(file, line);) {
        ++number;
        for (const std::string& literal : literals_of(line)) {
          ++literals;
          EXPECT_FALSE(names_the_command(literal)) << entry.path() << ':' << number << ": " << literal;
        }
      }
    }
  }
  EXPECT_GT(literals, 1000u);
}

}  // namespace
}  // namespace bloomery
