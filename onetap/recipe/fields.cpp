// The table of everything a recipe can say.
#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/recipe/recipe.h"

#include <algorithm>
#include <limits>

namespace onetap {
namespace {

RecipeField text(const char* key, const char* group, const char* help, RecipeMember member,
                 std::vector<std::string> choices = {}) {
  return {key, group, help, member, 0, 0, std::move(choices), false};
}

// Three numbers; above `low` if that is 0.
RecipeField numbers(const char* key, const char* group, const char* help, std::optional<PerColour> Recipe::*member,
                    double low) {
  return {key, group, help, member, low, std::numeric_limits<float>::max(), {}, false};
}

// One of the words of an enum.
template <typename Choice>
RecipeField choice(const char* key, const char* group, const char* help, Choice Recipe::*member) {
  return {key, group, help, member, 0, 0, choice_words<Choice>(), false};
}

RecipeField number(const char* key, const char* group, const char* help, RecipeMember member, double low, double high) {
  return {key, group, help, member, low, high, {}, false};
}

RecipeField toggle(const char* key, const char* group, const char* help, bool Recipe::*member) {
  return {key, group, help, member, 0, 1, {}, false};
}

RecipeField free_on_resume(RecipeField field) {
  field.may_change_on_resume = true;
  return field;
}

const char* method_help() {
  static const std::string help = [] {
    std::vector<std::string> choices;
    for (const MethodInfo& row : method_table()) choices.push_back(row.name + ": " + row.help);
    return join(choices, "; ");
  }();
  return help.c_str();
}

// The keys of all methods, behind the field that chooses one.
std::vector<RecipeField> with_method_keys(std::vector<RecipeField> fields) {
  const auto at = std::find_if(fields.begin(), fields.end(),
                               [](const RecipeField& field) { return std::string_view(field.key) == "method"; });
  std::vector<RecipeField> brought;
  for (const MethodKey* key : method_keys()) {
    RecipeField field = {key->in_recipes().c_str(), at->group, key->help.c_str(), {}, key->low, key->high, key->words};
    field.method_key = key;
    brought.push_back(std::move(field));
  }
  fields.insert(at + 1, brought.begin(), brought.end());
  return fields;
}

}  // namespace

const std::vector<RecipeField>& recipe_fields() {
  constexpr const char *kNetwork = "Network", *kMethod = "Method", *kData = "Data", *kOptimiser = "Optimisation",
                       *kRun = "Run";
  using R = Recipe;
  static const std::vector<RecipeField> fields = with_method_keys({
      text("arch", kNetwork, "architecture of the zoo ('onetap nets') or path to a network text file", &R::arch),
      number("width", kNetwork, "channels of the first stage (default: the architecture's own)", &R::width, 1, 65536),
      number("kernel", kNetwork, "kernel size of the k x k convolutions, 3 or 5 (default 3)", &R::kernel, 3, 5),
      number("expansion", kNetwork,
             "shift networks: channels inside a block, relative to its outputs (default: the architecture's own)",
             &R::expansion, 1, 64),
      choice("shortcut", kNetwork, "shortcut where shapes change: A subsamples and zero-pads, B is a 1x1 convolution",
             &R::shortcut),
      number("image_size", kNetwork, "side of the square images (default: the data's, else the architecture's)",
             &R::image_size, 8, 4096),
      choice("weight_init", kNetwork, "convolution weights: LibTorch's default or Kaiming normal over fan-out",
             &R::weight_init),
      text("init", kNetwork,
           "start from the weights of this run or of this .safetensors file (names as in torchvision)", &R::init),
      text("init_skip", kNetwork, "leave these tensors of --init out: globs separated by commas, such as 'fc.*'",
           &R::init_skip),
      text("freeze_layers", kNetwork,
           "parameters that are not trained: globs separated by commas, '!' excludes, such as 'layer1.*' or '!fc.*'; a "
           "batch norm among them keeps its statistics",
           &R::freeze_layers),
      text("shift_table", kNetwork,
           "fixed shifts: the same number of channels in every direction (uniform), or in the proportions of the taps "
           "that a run has learned (from:RUN)",
           &R::shift_table),

      text("method", kMethod, method_help(), &R::method, method_names()),
      text("layers", kMethod,
           "convolutions the method applies to: globs separated by commas, '!' excludes (default: every k x k "
           "convolution except the first)",
           &R::layers),
      choice("binarize", kMethod, "how the hard network is made: best tap (hard) or P > 0.5 (round)", &R::binarize),
      number("t0", kMethod, "temperature at the first step", &R::t0, 1e-6, 1e6),
      number("t1", kMethod, "temperature after the last step", &R::t1, 1e-6, 1e6),
      number("t_end", kMethod,
             "fraction of the steps after which the temperature stays constant, at --t1 unless --alpha is given",
             &R::t_end, 1e-3, 1),
      number("harden", kMethod,
             "fraction of the steps after which attention is hard: the temperature has fallen to --t1 by then, the "
             "taps are fixed, and only the kept weights are trained from then on; 1: never",
             &R::harden, 1e-3, 1),
      number("alpha", kMethod,
             "factor of the temperature per step, instead of deriving it from --t0, --t1 and the steps", &R::alpha,
             1e-6, 1),
      number("t_floor", kMethod, "the temperature never falls below this, until attention is hard (--harden)",
             &R::t_floor, 0, 1e6),

      choice(
          "quantize", kMethod,
          "train for int8, from a trained network (--init): weights and values are rounded as 'onetap quantize' does, "
          "attention is hard, batch norm's statistics do not change",
          &R::quantize),

      text("data", kData, "shapes, cifar10[:DIR], cifar100[:DIR] or folder:DIR", &R::data),
      number("limit", kData,
             "use at most this many training and this many test images, evenly over the classes; 0: all", &R::limit, 0,
             1e9),
      number("validation", kData,
             "hold out this fraction of the training images as the validation set; the best epoch is chosen on it, and "
             "the test set is used once, at the end; 0: none, the best epoch is chosen on the test set",
             &R::validation, 0, 0.9),
      toggle("strict", kData,
             "image folders: an image that cannot be decoded is an error, instead of being replaced by the next of its "
             "class",
             &R::strict),
      numbers("mean", kData,
              "mean of the pixels (0 to 1), which are scaled by (x - mean) / sd (default: that of --init, else the "
              "data's own)",
              &R::mean, std::numeric_limits<float>::lowest()),
      numbers("sd", kData, "standard deviation of the pixels (default: that of --init, else the data's own)", &R::sd,
              0),
      choice("augment", kData,
             "none, crop (pad, crop, flip), strong (crop, with jitter of 0.3 and cutout of a quarter of the side "
             "unless given), resized-crop (random area), or auto: the usual one for the data",
             &R::augment),
      number("pad", kData, "padding of the crop augmentation, in pixels", &R::pad, 0, 64),
      toggle("flip", kData, "flip training images at random", &R::flip),
      number("cutout", kData,
             "side of a square in every training image that is replaced with the mean colour, in pixels; 0: none",
             &R::cutout, 0, 4096),
      number("jitter", kData,
             "colours of training images: contrast and saturation by factors of 1 - X to 1 + X, brightness by -X to X "
             "standard deviations; 0: unchanged",
             &R::jitter, 0, 1),
      number("mixup", kData,
             "mix every training image with another of its batch, in a proportion drawn from Beta(X, X); 0: no",
             &R::mixup, 0, 100),
      number("cutmix", kData,
             "replace a box of every training image with that of another of its batch, with an area drawn from Beta(X, "
             "X); 0: no. With --mixup, one of the two is chosen at random for every batch",
             &R::cutmix, 0, 100),

      number("epochs", kOptimiser, "passes over the training set", &R::epochs, 1, 1e6),
      number("extend", kOptimiser,
             "epochs after those of the schedule, at a constant learning rate and the last temperature; with --out of "
             "a finished run: this many more",
             &R::extend, 0, 1e6),
      number("extend_lr", kOptimiser,
             "learning rate of the epochs of --extend (default: that of the schedule's last step)", &R::extend_lr, 0,
             1e6),
      number("patience", kOptimiser,
             "stop after this many epochs without a better (hard) accuracy, counted after the temperature has reached "
             "its final value (--t-end or --harden); 0: never",
             &R::patience, 0, 1e6),
      number("batch_size", kOptimiser, "images per step; the last, smaller batch is kept", &R::batch_size, 1, 1e6),
      number("accumulate", kOptimiser,
             "compute the batch of a step in this many parts, one after another, to save memory; batch norm uses the "
             "statistics of each part",
             &R::accumulate, 1, 1e6),
      choice(
          "optimizer", kOptimiser,
          "sgd, or adamw: Adam with decoupled weight decay (plain steps; --lr is 0.001 and --weight-decay 0.01 unless "
          "given)",
          &R::optimizer),
      number("lr", kOptimiser, "learning rate", &R::lr, 0, 1e6),
      choice("schedule", kOptimiser, "learning rate over time: step or cosine", &R::schedule),
      number("lr_every", kOptimiser, "step schedule: epochs between drops (default: a third of the epochs)",
             &R::lr_every, 1, 1e6),
      text("lr_milestones", kOptimiser,
           "step schedule: epochs after which the rate drops, such as '81,122', instead of --lr-every",
           &R::lr_milestones),
      number("lr_factor", kOptimiser, "step schedule: factor of a drop", &R::lr_factor, 0, 1),
      number("lr_final", kOptimiser, "cosine schedule: learning rate at the end", &R::lr_final, 0, 1e6),
      number("warmup_epochs", kOptimiser, "linear warm-up from 0, in epochs", &R::warmup_epochs, 0, 1e6),
      number("momentum", kOptimiser, "momentum of SGD", &R::momentum, 0, 0.9999),
      toggle("nesterov", kOptimiser, "Nesterov momentum", &R::nesterov),
      toggle("restart_momentum", kOptimiser,
             "reset momentum to zero at the start of every epoch, as in the authors' code", &R::restart_momentum),
      number("beta1", kOptimiser, "AdamW: decay of the average of the gradients per step", &R::beta1, 0, 0.9999),
      number("beta2", kOptimiser, "AdamW: decay of the average of the squared gradients per step", &R::beta2, 0,
             0.999999),
      number("weight_decay", kOptimiser, "weight decay of every parameter; of attention logits times --logit-decay",
             &R::weight_decay, 0, 1),
      toggle("decay_norms", kOptimiser, "weight decay of batch norms and biases too", &R::decay_norms),
      number("logit_decay", kOptimiser, "weight decay of attention logits, relative to --weight-decay", &R::logit_decay,
             0, 1e3),
      number("shift_lr", kOptimiser, "learning rate of active shifts, relative to --lr", &R::shift_lr, 0, 1e3),
      number("label_smoothing", kOptimiser, "fraction of the target spread over all classes", &R::label_smoothing, 0,
             0.99),
      text("teacher", kOptimiser,
           "learn from the outputs of this trained network too: a run, one of its checkpoints, or a .tap file",
           &R::teacher),
      number("teacher_weight", kOptimiser,
             "fraction of the loss that compares with the teacher; the rest compares with labels", &R::teacher_weight,
             0, 1),
      number("teacher_temperature", kOptimiser, "outputs of both networks are divided by this before they are compared",
             &R::teacher_temperature, 0.01, 1000),
      toggle("sync_norm", kOptimiser, "several processes: batch norm over the images of all processes, not of each",
             &R::sync_norm),
      number("ema", kOptimiser,
             "test, save and freeze a moving average of the weights with this decay per step; 0: none", &R::ema, 0,
             0.999999),
      number("recalibrate", kOptimiser,
             "before the last test, recompute batch norm's statistics from this number of training images, with the "
             "kept taps only; 0: no",
             &R::recalibrate, 0, 1e9),

      number("seed", kRun, "random seed of weights, order of images and augmentation", &R::seed, 0, 9.2e18),
      free_on_resume(number("threads", kRun,
                            "CPU threads; 0 means all that this process may use. Bit-identical results need the "
                            "same number",
                            &R::threads, 0, 1024)),
      free_on_resume(number("workers", kRun,
                            "threads that prepare batches; 0 means one, or all CPUs for image folders on a GPU. The "
                            "result does not depend on it",
                            &R::workers, 0, 256)),
      free_on_resume(text("device", kRun, "auto, cpu, cuda or cuda:N", &R::device)),
      free_on_resume(choice(
          "precision", kRun,
          "precision of activations: fp32, tf32 or bf16 (GPUs), or auto: bf16 on a GPU, fp32 on a CPU; weights are "
          "always fp32",
          &R::precision)),
      free_on_resume(
          choice("engine", kRun,
                 "how a step is computed: plain (LibTorch's autograd, op by op), captured (the same with the data on "
                 "the device, on a GPU as one CUDA graph), fused (onetap's own kernels, without autograd), or auto: on "
                 "a GPU fused if the network allows it, else captured; on a CPU plain",
                 &R::engine)),
      free_on_resume(toggle("cuda_graph", kRun,
                            "GPU: replay fused and captured steps as CUDA graphs; without it, auto selects plain steps "
                            "instead of captured ones",
                            &R::cuda_graph)),
      free_on_resume(number("conv_trials", kRun,
                            "GPU: number of cuDNN algorithms to time for each convolution when a run starts; 0: all of "
                            "them, which takes longer and may find faster ones",
                            &R::conv_trials, 0, 1000)),
      number("eval_every", kRun, "epochs between tests (the last epoch is always tested)", &R::eval_every, 1, 1e6),
      free_on_resume(number("checkpoint_epochs", kRun,
                            "epochs between checkpoints; the last epoch and a new best are always kept",
                            &R::checkpoint_epochs, 1, 1e6)),
      free_on_resume(number("checkpoint_steps", kRun,
                            "also write a checkpoint every N steps; 0 means at the end of epochs only",
                            &R::checkpoint_steps, 0, 1e9)),
      free_on_resume(number("keep_checkpoints", kRun,
                            "number of newest checkpoints to keep, in addition to the best one", &R::keep_checkpoints,
                            1, 1e6)),
  });
  return fields;
}

const RecipeField* find_recipe_field(std::string_view key) {
  const auto& fields = recipe_fields();
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const RecipeField& field) { return key == field.key; });
  return found == fields.end() ? nullptr : &*found;
}

const RecipeField& known_recipe_field(std::string_view key, std::string_view where) {
  if (const RecipeField* field = find_recipe_field(key)) return *field;
  std::vector<std::string> keys;
  for (const RecipeField& candidate : recipe_fields()) keys.emplace_back(candidate.key);
  fail_usage("[recipe] unknown key {}{}", where, did_you_mean(key, keys));
}

std::string RecipeField::flag() const {
  std::string name = std::string("--") + key;
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string RecipeField::flag_with(const std::string& value) const {
  if (!std::holds_alternative<bool Recipe::*>(member)) return flag() + "=" + value;
  return value == "true" ? flag() : "--no-" + flag().substr(2);
}

bool RecipeField::is_text() const {
  if (method_key != nullptr) return method_key->is_word();
  return std::holds_alternative<std::string Recipe::*>(member) || !choices.empty() || is_per_colour();
}

bool RecipeField::is_per_colour() const {
  return std::holds_alternative<std::optional<PerColour> Recipe::*>(member);
}

bool RecipeField::is_quoted(std::string_view value) const {
  const bool is_share = method_key != nullptr && method_key->is_share();
  return is_text() || (is_share && !parse_int(value));
}

const char* RecipeField::value_name() const {
  if (std::holds_alternative<bool Recipe::*>(member)) return "";
  if (is_per_colour()) return "R,G,B";
  if (is_text()) return "TEXT";
  if (method_key != nullptr && method_key->is_share()) return "N|NxM|all";
  if (method_key != nullptr) return std::holds_alternative<double>(method_key->usual) ? "X" : "N";
  if (std::holds_alternative<double Recipe::*>(member)) return "X";
  if (std::holds_alternative<std::optional<double> Recipe::*>(member)) return "X";
  return "N";
}

}  // namespace onetap
