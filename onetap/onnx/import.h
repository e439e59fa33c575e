// An ONNX model of a classification network as a Graph and its tensors. docs/onnx.md has the operators.
#pragma once

#include "onetap/tap/tap_net.h"

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onetap {

struct ImportOptions {
  Shape shape;  // of an image, for a model that leaves it open; empty: as the model says
};

struct ImportedNet {
  Graph graph;  // conv, linear, bn and ops without tensors; affine for products and sums with constants
  // NAME.weight and NAME.bias, of a bn NAME.running_mean and NAME.running_var too. Of an affine: factor and shift.
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;  // of a model that onetap wrote: as in a .tap file
  // Of a quantised model: the int8 network that it is. graph and tensors are then the floats that it stands for.
  std::shared_ptr<const TapNet> int8;
  std::vector<std::string> notes;  // what a user should know of it, one line each
};

// kData, naming the operator and what would be needed, for a model that has no such form; kUsage for a shape that is
// not the model's.
ImportedNet import_onnx(const std::filesystem::path& path, const ImportOptions& options = {});
// The same of a model in memory, without data in other files.
ImportedNet parse_onnx(const std::string& bytes, std::string_view label, const ImportOptions& options = {});

// The network for training with any method: an affine becomes a bn, and so does the bias of a conv, because layers with
// a method have none. Such a bn has statistics 0 and 1: in evaluation the network computes the same.
ImportedNet trainable_net(const ImportedNet& net);

// How the metadata of a model of ours say that pixels are scaled; nothing if it has none. kData for damaged ones.
std::optional<PixelScale> known_pixels(const ImportedNet& net);

// As .safetensors, with the tensors' names; with the scale of pixels in its metadata, if there is one.
std::string tensor_file(const ImportedNet& net, const std::optional<PixelScale>& pixels = {});

// Frozen: batch norms folded, every weight kept, zeros too (sparse_to_taps() drops them); of a quantised model its int8
// network. Metadata of our own models (mean, sd, classes) are taken over.
TapNet frozen_net(const ImportedNet& net);

}  // namespace onetap
