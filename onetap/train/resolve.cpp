#include "onetap/train/resolve.h"

#include "onetap/base/cpus.h"
#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/graph/method.h"
#include "onetap/graph/zoo/zoo.h"
#include "onetap/nn/graph_module.h"

#include <algorithm>

namespace onetap {
namespace {

// Networks for CIFAR's 32 pixels see too little of a photograph in that size; four times the work is still small.
int64_t folder_image_size(const DataSource& source, int64_t usual) {
  constexpr int64_t kForPhotographs = 64;
  return usual < kForPhotographs && typical_side(*source.train) >= kForPhotographs ? kForPhotographs : usual;
}

}  // namespace

Recipe resolve_recipe(Recipe recipe, const DataSource& source, int64_t processes) {
  recipe.data = absolute_data_spec(recipe.data);
  make_paths_absolute(recipe);
  if (!is_network_file(recipe.arch)) {
    const ZooEntry& entry = find_architecture(recipe.arch);
    if (!recipe.width) recipe.width = entry.default_width;
    if (!recipe.kernel) recipe.kernel = entry.default_kernel;
    if (!recipe.expansion) recipe.expansion = entry.default_expansion;
    if (!recipe.image_size) {
      recipe.image_size = source.image_size > 0 ? source.image_size : folder_image_size(source, entry.default_image[1]);
    }
  }
  if (recipe.mean || recipe.sd) {
    const Normalisation both = recipe_normalisation(recipe, source);
    recipe.mean = both.mean;
    recipe.sd = both.sd;
  }
  check_precision(recipe);
  if (recipe.augment == AugmentChoice::kAuto) {
    recipe.augment = source.image_size > 0 ? AugmentChoice::kCrop : AugmentChoice::kResizedCrop;
  }
  if (recipe.augment == AugmentChoice::kStrong) {
    if (recipe.jitter == 0) recipe.jitter = 0.3;
    if (recipe.cutout == 0) recipe.cutout = recipe.image_size.value_or(source.image_size) / 4;
  }
  // Attention is hard all the time.
  if (recipe.quantize != Quantize::kNone) recipe.t0 = recipe.t1;
  const bool has_milestones = !recipe.lr_milestones.empty();
  if (!recipe.lr_every && !has_milestones) recipe.lr_every = std::max<int64_t>(1, (recipe.epochs + 2) / 3);
  const int64_t cpus = std::max<int64_t>(1, available_cpus() / processes);
  if (recipe.threads == 0) recipe.threads = cpus;
  if (recipe.workers == 0) {
    // Decoding must keep up with a GPU; on a CPU it would take time from the steps.
    const bool decodes_for_gpu = source.image_size == 0 && parse_device(recipe.device).is_cuda();
    recipe.workers = decodes_for_gpu ? std::min<int64_t>(cpus, 256) : 1;
  }
  return recipe;
}

void check_precision(const Recipe& recipe) {
  const bool for_gpus = recipe.precision == Precision::kBf16 || recipe.precision == Precision::kTf32;
  if (!for_gpus || parse_device(recipe.device).is_cuda()) return;
  fail_usage("[train] expected --precision auto or fp32 on a CPU, got {}: it is for GPUs",
             recipe.precision == Precision::kBf16 ? "bf16" : "tf32");
}

void check_patience(const Recipe& recipe, const Graph& graph) {
  if (recipe.patience == 0 || !has_soft_form(graph) || std::min(recipe.t_end, recipe.harden) < 1) return;
  fail_usage(
      "[train] --patience counts epochs after the temperature has reached its end: "
      "expected --t-end or --harden below 1 (such as 0.7), got {} and {}",
      recipe.t_end, recipe.harden);
}

void check_network(const Graph& graph, const DataSource& source) {
  const auto classes = static_cast<int64_t>(source.classes.size());
  nn::check_trainable(graph);
  graph.check_classifier(classes);
  const Shape& image = graph.input().shape;
  if (image.size() != 3 || image[0] != 3 || image[1] != image[2]) {
    fail_usage("[train] expected a network for square colour images 3xSxS, got input {}", shape_text(image));
  }
}

void check_view(const Recipe& recipe, const Graph& graph, const DataSource& source) {
  const AugmentOptions augment = recipe_augment(recipe);
  if (augment.kind != Augment::kPadCrop) return;
  Image image;
  source.train->read(0, image);
  const int64_t view = graph.input().shape[1], side = std::min(image.height, image.width);
  if (view <= side + 2 * augment.pad) return;
  fail_usage(
      "[train] expected a network for at most {} pixels, got {}: images of {} are padded by {} on each side (see "
      "--image-size, --pad, --augment resized-crop)",
      side + 2 * augment.pad, view, side, augment.pad);
}

View recipe_view(const Recipe& recipe, const Graph& graph, const DataSource& source) {
  View view;
  view.size = graph.input().shape[1];
  view.normalisation = recipe_normalisation(recipe, source);
  return view;
}

Normalisation recipe_normalisation(const Recipe& recipe, const DataSource& source) {
  return {recipe.mean.value_or(source.normalisation.mean), recipe.sd.value_or(source.normalisation.sd)};
}

AugmentOptions recipe_augment(const Recipe& recipe) {
  AugmentOptions options;
  options.pad = recipe.pad;
  options.flip = recipe.flip;
  options.cutout = recipe.cutout;
  options.jitter = static_cast<float>(recipe.jitter);
  const bool pads = recipe.augment == AugmentChoice::kCrop || recipe.augment == AugmentChoice::kStrong;
  options.kind = pads                                            ? Augment::kPadCrop
                 : recipe.augment == AugmentChoice::kResizedCrop ? Augment::kResizedCrop
                                                                 : Augment::kNone;
  return options;
}

MixOptions recipe_mix(const Recipe& recipe) {
  return {recipe.mixup, recipe.cutmix};
}

nn::Objective recipe_objective(const Recipe& recipe) {
  return {recipe.label_smoothing, recipe.teacher_weight, recipe.teacher_temperature};
}

StreamOptions recipe_stream(const Recipe& recipe, const View& view, bool train, const Part& part) {
  StreamOptions options;
  options.view = view;
  options.batch_size = recipe.batch_size;
  options.workers = recipe.workers;
  options.train = train;
  options.augment = recipe_augment(recipe);
  options.seed = recipe.seed;
  options.part = part;
  return options;
}

namespace {

std::string device_hint(const std::string& text) {
  const std::string gpu = "gpu";  // one letter from "cpu"
  if (text.rfind(gpu, 0) == 0) return fmt::format(", did you mean 'cuda{}'?", text.substr(gpu.size()));
  return did_you_mean(text, {"auto", "cpu", "cuda"});
}

}  // namespace

torch::Device parse_device(const std::string& text, const std::string& verb) {
  if (text == "cpu") return torch::kCPU;
  if (text == "auto") return torch::cuda::is_available() ? torch::Device(torch::kCUDA) : torch::Device(torch::kCPU);
  const bool is_cuda = text == "cuda" || text.rfind("cuda:", 0) == 0;
  const auto index = text.size() > 5 ? parse_int(std::string_view(text).substr(5)) : std::optional<int64_t>(0);
  if (!is_cuda || !index || *index < 0) {
    fail_usage("[{}] expected device auto, cpu, cuda or cuda:N, got '{}'{}", verb, text, device_hint(text));
  }
  const auto present = static_cast<int64_t>(torch::cuda::device_count());
  if (present == 0) {
    fail_usage(
        "[{0}] expected a GPU for device '{1}', got none: {2}. 'onetap {0}' runs on the CPU with --device cpu, or "
        "without --device",
        verb, text, at::globalContext().hasCUDART() ? "CUDA finds no device" : "this LibTorch was built without CUDA");
  }
  if (*index >= present) fail_usage("[{}] expected a device below cuda:{}, got '{}'", verb, present, text);
  return torch::Device(torch::kCUDA, static_cast<torch::DeviceIndex>(*index));
}

std::string rank_device(const std::string& text, int64_t local_rank) {
  if (!parse_device(text).is_cuda()) return "cpu";
  if (text != "auto" && text != "cuda") return text;
  const auto present = static_cast<int64_t>(torch::cuda::device_count());
  if (present == 1) return "cuda:0";
  if (local_rank >= present) {
    fail_usage("[train] expected a GPU for every rank of this machine, got {} GPUs and local rank {}", present,
               local_rank);
  }
  return fmt::format("cuda:{}", local_rank);
}

}  // namespace onetap
