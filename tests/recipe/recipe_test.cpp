#include "onetap/recipe/recipe.h"

#include "tests/support/support.h"

#include <fmt/format.h>

#include <set>

namespace onetap {
namespace {

using testing::expect_error;

Recipe parse(const std::string& text) {
  Recipe recipe;
  apply_recipe_text(recipe, text, "test.toml");
  return recipe;
}

void expect_refused(const std::string& text, const std::string& why) {
  expect_error(ErrorKind::kUsage, why, [&] { check_recipe(parse(text)); });
}

TEST(RecipeText, AnyBytesInStringsAndComments) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_EQ(parse(mark + "data = \"folder:/\xC3\xA9\" # \xC3\xA9 \xFF\n").data, "folder:/\xC3\xA9");
  EXPECT_EQ(parse("data = 'folder:/a%20b%C3 100%'\n").data, "folder:/a%20b%C3 100%");
  Recipe recipe;
  recipe.data = "folder:/\xFF%41\xC3\xA9";
  EXPECT_EQ(parse(recipe_text(recipe)).data, recipe.data);
}

TEST(Recipe, DefaultsAreThePapersCifarRecipe) {
  const Recipe recipe;
  EXPECT_EQ(recipe.epochs, 300);
  EXPECT_EQ(recipe.batch_size, 128);
  EXPECT_EQ(recipe.lr, 0.1);
  EXPECT_EQ(recipe.momentum, 0.9);
  EXPECT_FALSE(recipe.nesterov);
  EXPECT_EQ(recipe.weight_decay, 5e-4);
  EXPECT_EQ(recipe.t0, 6.7);
  EXPECT_EQ(recipe.t1, 0.02);
  check_recipe(recipe);
}

TEST(Recipe, ReadsEveryKindOfValue) {
  const Recipe recipe = parse(
      "arch = \"resnet56\"\nwidth = 29\nlr = 1\nt1 = 1e-2\nnesterov = true\nseed = 18\n"
      "[provenance]\nanything = [\"goes\", 1]\n");
  EXPECT_EQ(recipe.arch, "resnet56");
  EXPECT_EQ(recipe.width, 29);
  EXPECT_EQ(recipe.lr, 1.0);
  EXPECT_EQ(recipe.t1, 0.01);
  EXPECT_TRUE(recipe.nesterov);
  EXPECT_EQ(recipe.seed, 18u);
}

TEST(Recipe, FlagsWithTheirValues) {
  EXPECT_EQ(find_recipe_field("t1")->flag_with("0.02"), "--t1=0.02");
  EXPECT_EQ(find_recipe_field("batch_size")->flag_with("64"), "--batch-size=64");
  EXPECT_EQ(find_recipe_field("flip")->flag_with("true"), "--flip");
  EXPECT_EQ(find_recipe_field("cuda_graph")->flag_with("false"), "--no-cuda-graph");
}

TEST(Recipe, TextRoundTrips) {
  Recipe recipe;
  recipe.arch = "we\"ird\\path\n/net.txt";
  recipe.width = 83;
  recipe.alpha = 0.9999505;
  recipe.lr = 1.0 / 3.0;
  recipe.label_smoothing = 1e-7;
  recipe.nesterov = true;
  recipe.seed = 9000000000000000000u;
  EXPECT_TRUE(parse(recipe_text(recipe)) == recipe) << recipe_text(recipe);
  EXPECT_TRUE(parse(recipe_text(Recipe{})) == Recipe{});
}

TEST(Recipe, EveryFieldRoundTripsAwayFromItsDefault) {
  for (const RecipeField& field : recipe_fields()) {
    Recipe recipe;
    std::string value = "text";
    if (!field.choices.empty()) value = field.choices.back();
    if (std::holds_alternative<bool Recipe::*>(field.member)) {
      value = recipe_field_text(recipe, field) == "true" ? "false" : "true";
    } else if (!field.is_text()) {
      const bool is_one = recipe_field_text(recipe, field) == "1";
      value = field.low > 1                                  ? std::to_string(static_cast<int>(field.low))
              : field.high < 1 || (is_one && field.high < 2) ? "0.5"
              : is_one                                       ? "2"
                                                             : "1";
    }
    if (std::string_view(field.key) == "share") value = "4x2";
    if (field.is_per_colour()) value = "0.1,0.2,0.3";
    set_recipe_field(recipe, field, value, field.key);
    EXPECT_TRUE(parse(recipe_text(recipe)) == recipe) << field.key;
  }
}

TEST(Recipe, SaysWhatIsWrongAndWhere) {
  expect_refused("widht = 3\n", "unknown key widht (test.toml:1), did you mean 'width'?");
  expect_refused("\n\nepochs = 0\n", "expected epochs (test.toml:3) in 1..1000000, got 0");
  expect_refused("width = 0\n", "in 1..65536, got 0");
  expect_refused("epochs = 1.5\n", "expected a whole number for epochs");
  expect_refused("epochs = \"3\"\n", "expected a value without quotes");
  expect_refused("arch = 3\n", "in quotes");
  expect_refused("init_skip = \"fc.*\"\n", "init_skip leaves tensors of init out: expected init, got none");
  expect_refused("method = \"sla\"\n", "expected method (test.toml:1) to be conv, sal, random-taps,");
  expect_refused("method = \"sla\"\n", "got 'sla', did you mean 'sal'?");
  expect_refused("method = \"binary\"\n", "got 'binary'");  // frozen layers have it
  expect_refused("lr = nan\n", "expected a number for lr");
  expect_refused("lr = inf\n", "expected a number for lr");
  expect_refused("lr = [1]\n", "expected a single value");
  expect_refused("nesterov = 1\n", "expected true or false");
  expect_refused("lr = \n", "test.toml:1");
  expect_refused("[network]\nwidth = 3\n", "unknown key network");
  expect_refused("[[[[[[# x", "test.toml");
  expect_refused("# \xC3\xA9\nl\xC3\xA9 = 1\n", "test.toml:2");
  expect_refused("\"l\xC3\xA9\" = 1\n", "unknown key l\xC3\xA9 (test.toml:1)");
  expect_refused("t0 = 1\nt1 = 2\n", "expected t1 to be at most t0");
  expect_refused("t_end = 0\n", "expected t_end (test.toml:1) in 0.001..1, got 0");
  expect_refused("teacher_weight = 2\n", "expected teacher_weight (test.toml:1) in 0..1, got 2");
  expect_refused("nesterov = true\nmomentum = 0\n", "nesterov needs a momentum");
  expect_refused("epochs = 2\nwarmup_epochs = 3\n", "warmup_epochs of at most epochs = 2, got 3");
  for (const char* bad : {"a", "3,", "3,,4", "0,3", "-1", "4,3", "3,3", "nan", "1,inf"}) {
    expect_refused("lr_milestones = \"" + std::string(bad) + "\"\n", "epochs above 0 that rise, such as '81,122', got");
  }
  expect_refused("lr_milestones = \"81,122\"\nlr_every = 3\n", "expected lr_every or lr_milestones, got both");
}

// Each part of a key is a table within a table; the parser would take 200,000 of them apart by recursion.
TEST(RecipeText, KeysOfManyPartsAreRefusedBeforeTheyAreParsed) {
  const auto key = [](int parts, const std::string& part) {
    std::string text = part;
    for (int i = 1; i < parts; ++i) text += "." + part;
    return text;
  };
  for (const char* part : {"a", "\"a\"", "'a'", " a "}) {
    expect_refused("width = 3\n" + key(200000, part) + " = 1\n", "at most 17 parts, got more (test.toml:2)");
    expect_refused("[" + key(200000, part) + "]\n", "at most 17 parts");
    expect_refused("[provenance]\nx = {" + key(200000, part) + " = 1}\n", "at most 17 parts");
  }
  // Behind strings of every kind, and what looks like their ends.
  for (const char* text : {R"("")", R"("\"")", R"('\')", R"("""""")", R"("""a"b\"""""")", R"("""a""""")", "''''a'''''",
                           "\"\"\"a\n\"\"\"", R"("a#b")"}) {
    SCOPED_TRACE(text);
    expect_refused("[provenance]\nx = [" + std::string(text) + ", {" + key(200000, "a") + " = 1}]\n",
                   "at most 17 parts");
  }
  EXPECT_EQ(parse("[provenance]\n" + key(17, "a") + " = 1\n").width, std::nullopt);
}

TEST(RecipeText, DotsElsewhereAreNoKeys) {
  const std::string dots(1000, '.');
  const Recipe recipe =
      parse("# " + dots + "\ndata = \"folder:" + dots + "\" # " + dots + "\nlr = 0.5\n[provenance]\ncommand = '" +
            dots + "'\nlong = \"\"\"\n" + dots + "\"\"\"\nlist = [1.5, 2.5, 3.5]\n");
  EXPECT_EQ(recipe.data, "folder:" + dots);
  EXPECT_EQ(recipe.lr, 0.5);
}

// Words as files of before have them.
TEST(Recipe, ChoicesAreEnumsWithTheWordsOfTheirTable) {
  const Recipe recipe = parse(
      "shortcut = \"A\"\nweight_init = \"fan-out\"\nbinarize = \"round\"\naugment = \"resized-crop\"\n"
      "schedule = \"cosine\"\nprecision = \"bf16\"\nengine = \"fused\"\n");
  EXPECT_EQ(recipe.shortcut, Shortcut::kA);
  EXPECT_EQ(recipe.weight_init, InitRule::kFanOut);
  EXPECT_EQ(recipe.binarize, Binarize::kRound);
  EXPECT_EQ(recipe.augment, AugmentChoice::kResizedCrop);
  EXPECT_EQ(recipe.schedule, LrSchedule::kCosine);
  EXPECT_EQ(recipe.precision, Precision::kBf16);
  EXPECT_EQ(recipe.engine, EngineChoice::kFused);
  const std::string text = recipe_text(recipe);
  for (const char* line :
       {"shortcut = \"A\"\n", "weight_init = \"fan-out\"\n", "binarize = \"round\"\n", "augment = \"resized-crop\"\n",
        "schedule = \"cosine\"\n", "precision = \"bf16\"\n", "engine = \"fused\"\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
  expect_refused("schedule = \"cosin\"\n", "to be step or cosine, got 'cosin', did you mean 'cosine'?");
  expect_refused("shortcut = 1\n", "in quotes");
  Recipe broken;
  broken.engine = static_cast<EngineChoice>(17);  // by C++ code
  expect_error(ErrorKind::kUsage, "expected engine to be auto, plain, captured or fused",
               [&] { check_recipe(broken); });
}

TEST(Recipe, KeysAndFlagsAreUniqueAndDescribed) {
  std::set<std::string> keys;
  for (const RecipeField& field : recipe_fields()) {
    EXPECT_TRUE(keys.insert(field.key).second) << field.key;
    EXPECT_GT(std::string(field.help).size(), 5u) << field.key;
    EXPECT_EQ(field.flag().rfind("--", 0), 0u);
    EXPECT_EQ(field.flag().find('_'), std::string::npos);
  }
}

TEST(Recipe, NetworkFromZooAndFromFile) {
  Recipe recipe;
  recipe.width = 8;
  recipe.method_keys["share"] = "4";
  const Graph zoo = recipe_network(recipe, 10, 32);
  EXPECT_TRUE(zoo.node("layer1.0.conv1").method.blocks("share") == 4);

  const testing::TempDir dir;
  const std::string plain =
      "onetap-net 1\nx = input 3x8x8\na = conv x out=4 kernel=3 pad=1\nb = conv a out=4 kernel=3 pad=1{}\n"
      "p = gap b\nfc = linear p out=10\n";
  const auto with = [&](const std::string& method) {
    std::string text = plain;
    text.replace(text.find("{}"), 2, method);
    testing::write_text(dir / "my.net", text);
    Recipe own;
    own.arch = (dir / "my.net").string();
    return own;
  };
  Recipe own = with("");
  EXPECT_EQ(recipe_network(own, 10, 0).node("b").method.name(), "sal");
  EXPECT_TRUE(recipe_network(own, 10, 0).node("a").method.is_dense());
  own = with(" method=sal taps=3 share=2");
  EXPECT_EQ(recipe_network(own, 10, 0).node("b").method.number("taps"), 3);  // the file's own methods stand
  own.method = "conv";
  EXPECT_TRUE(recipe_network(own, 10, 0).node("b").method.is_dense());
  expect_error(ErrorKind::kUsage, "expected 7 values from output 'fc'", [&] { recipe_network(own, 7, 0); });
}

TEST(Recipe, SharesAreNumbersOrTexts) {
  const auto read = [](const std::string& text) {
    Recipe recipe;
    apply_recipe_text(recipe, text, "test");
    check_recipe(recipe);
    return recipe;
  };
  const auto line = [](const Recipe& recipe) {
    const std::string text = recipe_text(recipe);
    const size_t at = text.find("\nshare = ") + 1;
    return text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_EQ(line(Recipe()), "share = 1");
  EXPECT_EQ(line(read("share = 4")), "share = 4");
  EXPECT_EQ(line(read("share = \"4x1\"")), "share = 4");
  for (const char* text : {"share = \"4x4\"", "share = \"all\"", "share = \"allx4\""}) {
    const Recipe recipe = read(text);
    EXPECT_EQ(line(recipe), text);
    EXPECT_TRUE(read(recipe_text(recipe)) == recipe);
  }
  EXPECT_TRUE(recipe_method(read("share = \"4x4\"")).blocks("share") == BlockShare(4, 4));
  for (const char* bad : {"share = 0", "share = -4", "share = 4.5", "share = true", "share = \"4x\"", "share = \"0x4\"",
                          "share = \"4x4x4\"", "share = \"allx0\"", "share = \"\""}) {
    expect_error(ErrorKind::kUsage,
                 "expected outputs (4), outputs x inputs (4x4), all or allx4 for share (test:1), got",
                 [&] { read(bad); });
  }
  EXPECT_EQ(recipe_field_text(Recipe(), *find_recipe_field("relax")), "auto");
  expect_error(ErrorKind::kUsage, "expected relax (test:1) to be auto, softmax or straight-through, got 'hard'",
               [&] { read("relax = \"hard\""); });
}

TEST(Recipe, MeanAndSdAreThreeNumbers) {
  const Recipe recipe = parse("mean = \"0.4914, 0.48220,4.465e-1\"\nsd = \"0.2023,0.1994,0.2010\"\n");
  EXPECT_EQ(recipe.mean, (PerColour{0.4914f, 0.4822f, 0.4465f}));
  EXPECT_EQ(recipe.sd, (PerColour{0.2023f, 0.1994f, 0.2010f}));
  check_recipe(recipe);
  // However they are spelled, a resumed run compares numbers.
  EXPECT_EQ(recipe_field_text(recipe, *find_recipe_field("mean")), "0.4914,0.4822,0.4465");
  EXPECT_NE(recipe_text(recipe).find("sd = \"0.2023,0.1994,0.201\"\n"), std::string::npos) << recipe_text(recipe);
  EXPECT_EQ(parse("mean = \"-1,0,2\"\n").mean, (PerColour{-1, 0, 2}));

  EXPECT_FALSE(Recipe().mean || Recipe().sd);
  EXPECT_FALSE(parse("mean = \"\"\nsd = \"\"\n").sd);
  EXPECT_EQ(recipe_text(Recipe()).find("mean ="), std::string::npos);  // a resumed run may have taken them from init
  EXPECT_STREQ(find_recipe_field("sd")->value_name(), "R,G,B");

  for (const char* numbers : {"0.5", "1,2", "1,2,3,4", "1,2,", "a,b,c", "nan,0,0", "0,inf,0", "1,2,1e39"}) {
    for (const char* key : {"mean", "sd"}) {
      expect_refused(fmt::format("{} = \"{}\"\n", key, numbers),
                     fmt::format("for {} (test.toml:1), got '{}'", key, numbers));
    }
  }
  for (const char* numbers : {"0,1,1", "1,-1,1", "1,1,1e-60"}) {
    expect_refused(fmt::format("sd = \"{}\"\n", numbers), "expected three numbers R,G,B above 0 for sd (test.toml:1)");
  }
  expect_refused("mean = 0.5\n", "expected a \"text\" in quotes for mean (test.toml:1), got 0.5");
  expect_refused("sd = [1, 1, 1]\n", "expected");
}

TEST(Recipe, EveryShippedRecipeIsValid) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ONETAP_RECIPES)) {
    SCOPED_TRACE(entry.path().string());
    Recipe recipe;
    if (entry.path().extension() == ".net") {
      recipe.arch = entry.path().string();
    } else {
      recipe = read_recipe(entry.path());
    }
    check_recipe(recipe);
    recipe_network(recipe, 10, 0);
    ++count;
  }
  EXPECT_GE(count, 10);
}

}  // namespace
}  // namespace onetap
