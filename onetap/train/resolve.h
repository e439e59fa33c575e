// From what a user wrote to a recipe with nothing left open.
#pragma once

#include "onetap/batches/batch_stream.h"
#include "onetap/data/dataset.h"
#include "onetap/data/mix.h"
#include "onetap/data/source.h"
#include "onetap/data/transform.h"
#include "onetap/graph/graph.h"
#include "onetap/nn/objective.h"
#include "onetap/nn/torch.h"
#include "onetap/recipe/recipe.h"

#include <string>

namespace onetap {

// Fills every default that depends on data, architecture or machine, whose CPUs so many processes share.
Recipe resolve_recipe(Recipe recipe, const DataSource& source, int64_t processes = 1);

// kUsage if the recipe asks for a precision that its device does not compute in.
void check_precision(const Recipe& recipe);

// kUsage if the recipe would stop before the temperature of the network's taps has ended.
void check_patience(const Recipe& recipe, const Graph& graph);

// kUsage if the network does not take this data's images or classes.
void check_network(const Graph& graph, const DataSource& source);
// kUsage where the views of training do not fit into the first image with its padding.
void check_view(const Recipe& recipe, const Graph& graph, const DataSource& source);

// The views a resolved recipe asks for. The network decides the size.
View recipe_view(const Recipe& recipe, const Graph& graph, const DataSource& source);
// Mean and sd of the recipe, or the data's own.
Normalisation recipe_normalisation(const Recipe& recipe, const DataSource& source);
AugmentOptions recipe_augment(const Recipe& recipe);
MixOptions recipe_mix(const Recipe& recipe);
nn::Objective recipe_objective(const Recipe& recipe);
// A pass over its data, from the start of the first epoch.
StreamOptions recipe_stream(const Recipe& recipe, const View& view, bool train, const Part& part = {});

// "auto", "cpu", "cuda", "cuda:1"; kUsage, naming `verb`, for a device that is not there.
torch::Device parse_device(const std::string& text, const std::string& verb = "train");

// What a rank calls its device: on GPUs each takes its own, unless it sees one alone.
std::string rank_device(const std::string& text, int64_t local_rank);

}  // namespace onetap
