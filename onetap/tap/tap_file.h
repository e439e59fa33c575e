// The .tap file: a valid safetensors file with the graph as JSON in its metadata. docs/file-format.md has every byte.
#pragma once

#include "onetap/tap/tap_net.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onetap {

// The whole file in memory.
std::string tap_bytes(const TapNet& net);
// Its length, known before there are weights: of a network of this frozen form without classes and facts.
uint64_t tap_length(const Graph& frozen, WeightType type);

// Bytes of every node's tensors in the file, in the order of the nodes: weights, positions, biases, scales.
std::vector<uint64_t> stored_bytes(const TapNet& net);

// A scale of pixels in the metadata of a file: mean and sd, each a list of three numbers.
std::map<std::string, std::string> pixel_metadata(const PixelScale& pixels);
// Nothing if the metadata have neither. kData naming `label` for one alone, and for what is no such scale.
std::optional<PixelScale> find_pixels(const std::map<std::string, std::string>& metadata, std::string_view label);

// What the file's metadata says beside the graph: mean, sd, classes, and facts as about.KEY.
std::map<std::string, std::string> tap_metadata(const TapNet& net);

// The other way round: sets the scale of pixels, the classes and the facts. kData naming `label` if they are not those
// of a frozen network; mean and sd must be there.
void read_tap_metadata(const std::map<std::string, std::string>& metadata, std::string_view label, TapNet& net);

// There whole or not at all.
void write_tap(const std::filesystem::path& path, const TapNet& net);

// Checks everything before use. kData naming `label` for a file that is damaged or no frozen network.
TapNet parse_tap(std::string bytes, std::string_view label);
TapNet read_tap(const std::filesystem::path& path);

// True for a regular file that begins like a safetensors file: a network text file does not.
bool looks_like_tap(const std::filesystem::path& path);

}  // namespace onetap
