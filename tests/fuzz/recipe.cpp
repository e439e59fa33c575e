// A recipe that is accepted must survive being written and read again.
#include "onetap/recipe/recipe.h"

#include "tests/fuzz/fuzz.h"

using namespace onetap;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Recipe recipe;
  const bool accepted = fuzz::accepts([&] {
    apply_recipe_text(recipe, fuzz::text_of(data, size), "fuzz");
    check_recipe(recipe);
  });
  if (!accepted) return 0;
  Recipe again;
  apply_recipe_text(again, recipe_text(recipe), "again");
  fuzz::require(again == recipe);
  return 0;
}
