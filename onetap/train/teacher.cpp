#include "onetap/train/teacher.h"

#include "onetap/base/fail.h"
#include "onetap/base/file.h"
#include "onetap/base/per_colour.h"
#include "onetap/base/sha256.h"
#include "onetap/data/source.h"
#include "onetap/graph/batch_norm.h"
#include "onetap/graph/method.h"
#include "onetap/journal/run_files.h"
#include "onetap/tap/tap_file.h"
#include "onetap/tap/trainable_form.h"
#include "onetap/train/checkpoint.h"
#include "onetap/train/resolve.h"

#include <system_error>
#include <unordered_map>

namespace fs = std::filesystem;

namespace onetap {
namespace {

using Notice = std::function<void(const std::string&)>;
using Tensors = std::unordered_map<std::string, torch::Tensor>;

// Copies tensors into those of the module that have their names.
void fill(nn::GraphModule& module, const Tensors& tensors) {
  const torch::NoGradGuard no_grad;
  for (auto& [name, tensor] : nn::state_of(*module)) {
    if (const auto given = tensors.find(name); given != tensors.end()) tensor.detach().copy_(given->second);
  }
}

// The network with every method's finished weights in ordinary layers.
nn::GraphModule made_dense(nn::GraphModule trained) {
  const torch::NoGradGuard no_grad;
  const nn::ModeGuard hard(trained, nn::AttentionMode::kHard);
  const auto state = nn::state_of(*trained);
  Tensors tensors(state.begin(), state.end());
  for (const auto& layer : trained->trained_layers()) {
    tensors[layer.name + ".weight"] = layer.layer->effective_weight();
  }
  Graph graph = trained->graph();
  apply_method(graph, Method{}, "");
  nn::GraphModule dense(graph);
  fill(dense, tensors);
  return dense;
}

torch::Tensor as_tensor(const Tensor& tensor) {
  return torch::from_blob(const_cast<float*>(tensor.data<float>()), tensor.shape(), torch::kFloat32).clone();
}

nn::GraphModule from_tap(const TapNet& net) {
  nn::GraphModule module(trainable_form(net.graph));
  Tensors tensors;
  for (const Node& node : net.graph.nodes()) {
    const auto found = net.layers.find(node.name);
    if (found == net.layers.end()) continue;
    const LayerTensors& layer = found->second;
    if (layer.bias.count() > 0) tensors[node.name + ".bias"] = as_tensor(layer.bias);
    if (node.op == Op::kAffine) {
      // A batch norm whose statistics change nothing.
      tensors[node.name + ".weight"] = as_tensor(layer.weight);
      tensors[node.name + ".running_mean"] = torch::zeros({node.shape[0]});
      tensors[node.name + ".running_var"] = torch::full({node.shape[0]}, 1 - kBatchNormEpsilon);
    } else {
      std::vector<float> weight = dense_weight(net, node);
      const Shape shape = dense_shape(net.graph, node);
      tensors[node.name + ".weight"] = torch::from_blob(weight.data(), shape, torch::kFloat32).clone();
    }
  }
  fill(module, tensors);
  return module;
}

std::string checksum_of(const std::vector<fs::path>& files) {
  Sha256 hash;
  for (const fs::path& file : files) {
    const std::string bytes = read_file(file);
    hash.update(bytes.data(), bytes.size());
  }
  return hash.hex();
}

// The checkpoint at this path, of the run that holds it.
Checkpoint checkpoint_at(const CheckpointFolder& folder, const fs::path& path) {
  for (const Checkpoint& checkpoint : folder.list()) {
    std::error_code ignored;
    if (fs::equivalent(checkpoint.path, path, ignored)) return checkpoint;
  }
  fail_data("[teacher] expected a complete checkpoint of a run, got {}", path.string());
}

// What the student is trained on.
struct Images {
  const DataSource& source;
  Normalisation pixels;
};

// Teacher and student read the same scaled pixels.
void check_pixels(const Images& images, const Normalisation& given, const fs::path& path) {
  const Normalisation& wanted = images.pixels;
  if (given.mean == wanted.mean && given.sd == wanted.sd) return;
  fail_usage("[teacher] expected a network with the mean and sd of {} in this run ({} and {}), got {} and {} ({})",
             images.source.spec, per_colour_text(wanted.mean), per_colour_text(wanted.sd), per_colour_text(given.mean),
             per_colour_text(given.sd), path.string());
}

// `checkpoint`: one of its own; empty: the last.
LoadedTeacher from_run(const fs::path& run, const fs::path& checkpoint, const Images& images, const Notice& notice) {
  const RunFiles files(run);
  const Recipe recipe = files.read_config();
  const std::string data = parse_data_spec(recipe.data).kind, own = parse_data_spec(images.source.spec).kind;
  if (data != own) {
    fail_usage("[teacher] expected a network trained on {}, got one trained on {} ({})", own, data, run.string());
  }
  check_pixels(images, usual_normalisation(recipe.data, recipe.mean, recipe.sd), run);
  nn::GraphModule module(files.read_graph());
  const CheckpointFolder folder(files.checkpoints());
  Checkpoint used;
  if (checkpoint.empty()) {
    used = folder.open("last", module, notice);
  } else {
    used = checkpoint_at(folder, checkpoint);
    CheckpointFolder::load(used, module);
  }
  return {made_dense(module), checksum_of({files.network(), CheckpointFolder::weights_file(used)})};
}

LoadedTeacher from_tap_file(const fs::path& file, const Images& images) {
  const TapNet net = read_tap(file);
  if (net.is_int8()) fail_data("[teacher] expected a network of floats, got one of int8 ({})", file.string());
  check_pixels(images, {net.pixels.mean, net.pixels.sd}, file);
  return {from_tap(net), checksum_of({file})};
}

LoadedTeacher read_teacher(const fs::path& path, const Images& images, const Notice& notice) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) fail_data("[teacher] cannot open {}: {}", path.string(), error.message());
  if (RunFiles(real).holds_run()) return from_run(real, {}, images, notice);
  if (fs::is_directory(real, error)) {
    const fs::path run = real.parent_path().parent_path();
    if (RunFiles(run).holds_run()) return from_run(run, real, images, notice);
  } else if (looks_like_tap(real)) {
    return from_tap_file(real, images);
  }
  fail_data("[teacher] expected a run, a checkpoint of one or a .tap file, got {}", path.string());
}

}  // namespace

LoadedTeacher load_teacher(const Recipe& recipe, const Graph& student, const DataSource& source, const Notice& notice) {
  LoadedTeacher teacher = read_teacher(recipe.teacher, {source, recipe_normalisation(recipe, source)}, notice);
  const Graph& graph = teacher.module->graph();
  const Node &given = graph.node(graph.output()), &wanted = student.node(student.output());
  if (given.shape != wanted.shape) {
    fail_usage("[teacher] expected a network with {} outputs, got one with {} ({})", shape_text(wanted.shape),
               shape_text(given.shape), recipe.teacher);
  }
  if (graph.input().shape != student.input().shape) {
    fail_usage("[teacher] expected a network for images of {}, got one for {} ({})", shape_text(student.input().shape),
               shape_text(graph.input().shape), recipe.teacher);
  }
  teacher.module->eval();
  return teacher;
}

void check_same_teacher(const LoadedTeacher& teacher, const RunState& state, const Recipe& recipe) {
  if (state.step == 0 || state.teacher == teacher.checksum) return;
  fail_data("[teacher] expected the teacher that this run began with (SHA-256 {}), got another ({}, SHA-256 {})",
            state.teacher.empty() ? "unknown" : state.teacher, recipe.teacher, teacher.checksum);
}

}  // namespace onetap
