// Opening a data set by what the user typed after --data.
#pragma once

#include "onetap/base/per_colour.h"
#include "onetap/data/dataset.h"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace onetap {

// A data set by name, before anything is opened.
struct DataSpec {
  std::string kind;      // shapes, cifar10, cifar100, folder
  std::string argument;  // a directory, or options for shapes
  std::string options;   // ",limit=100,strict", as typed
};

// "shapes", "shapes:train=2000,test=500,seed=1", "cifar10:DIR", "cifar100:DIR", "folder:DIR"; cifar10 and
// cifar100 without a directory mean the cache that `onetap data fetch` fills. kUsage for anything else. Options may
// follow, in this order of effect:
//   ,test=X         folder: the fraction that becomes the test set where the folder has no splits of its own (0.2)
//   ,seed=N         folder, cifar10, cifar100: of all choices of images (0)
//   ,limit=N        at most N training and N test images, evenly over the classes
//   ,validation=X   this fraction of the training images is held out (DataSource::validation)
//   ,strict         folder: an image that cannot be decoded is an error
// A directory whose name ends like an option is taken as it is if it exists.
DataSpec parse_data_spec(std::string_view text);

// The data set's path made absolute, so that a run resumes from any directory; "shapes" stays as it is.
std::string absolute_data_spec(const std::string& spec);

DataSource open_data(std::string_view spec);

// The mean and sd of such data ("cifar10:DIR", opened or not), but for what is given. Of a recipe: those that a run was
// trained with, whatever data it meets now.
Normalisation usual_normalisation(std::string_view spec, const std::optional<PerColour>& mean = std::nullopt,
                                  const std::optional<PerColour>& sd = std::nullopt);

// The median of the shorter sides of some images, spread over the set.
int64_t typical_side(const Dataset& data);

// $ONETAP_DATA, else $XDG_CACHE_HOME/onetap/data, else ~/.cache/onetap/data.
std::filesystem::path data_cache_directory();

}  // namespace onetap
