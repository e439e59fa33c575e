// Writes frozen networks with inputs and the reference executor's outputs, for tests/tools/onnx_test.py to compare
// with.
//   dump_nets FOLDER SEED COUNT [zoo|int8]
// NAME.tap is a network, NAME.safetensors its x [images, ...] and y [images, ...]. zoo: every architecture of the zoo
// too, narrow. int8: quantized networks instead.
#include "onetap/base/safetensors.h"
#include "onetap/graph/text.h"
#include "onetap/runtime/int8_reference.h"
#include "onetap/runtime/reference.h"
#include "onetap/tap/tap_file.h"
#include "tests/graph/small_nets.h"
#include "tests/quant/random_int8_net.h"
#include "tests/tap/random_net.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string_view>

using namespace onetap;
using namespace onetap::testing;

namespace {

constexpr int64_t kImages = 3;

// What random graphs do not have: sums and concatenations of three, padded pools, vectors put together.
constexpr const char* kRareForms = R"(onetap-net 1
x = input 3x11x9
a = tapconv x out=7 kernel=3x5 pad=1x2 taps=2 share=3 bias=1
b = affine a
c = conv a out=7 kernel=1 bias=1
sum = add a b c
peak = maxpool sum kernel=3 stride=2 pad=1
mean = avgpool peak kernel=4x3 stride=1x2 pad=2x1
again = concat mean mean mean
thin = subsample again out=26 stride=3x2
deep = tapconv thin out=8 kernel=3 pad=2 dilation=2 groups=2 taps=1
pool = gap deep
flat = flatten deep
both = concat pool flat
once = flatten both
hidden = linear once out=6
bent = relu hidden
more = add bent hidden
fc = linear more out=5 bias=0
unread = relu deep
output fc
)";

// What the rivals of tap convolutions are frozen to: shifts and active shifts that stay, at both strides, a shift that
// went into its convolution, binary weights, depthwise convolutions.
constexpr const char* kRivals = R"(onetap-net 1
x = input 3x13x11
a = conv x out=20 kernel=3 pad=1 bias=1 method=binary
ra = relu a
s = shift ra kernel=5 dilation=2
rs = relu s
t = shift rs kernel=3
folded = conv t out=12 stride=2 bias=1
f = activeshift folded
g = activeshift f stride=2
d = conv g out=24 kernel=3 pad=1 groups=12 bias=1
e = conv d out=24 kernel=5 pad=2 stride=2 groups=24
far = activeshift e
u = shift far kernel=3 counts=3,3,0,0,9,0,0,4,5
pool = gap u
fc = linear pool out=5 method=binary
)";

// What imported networks have: functions beside ReLU, products, pads.
constexpr const char* kImported = R"(onetap-net 1
x = input 3x9x8
a = conv x out=6 kernel=3 bias=1
b = relu6 a
c = hardswish b
d = silu c
e = pad d sides=0,1,1,0
low = pad d sides=0,1,1,0 fill=lowest
n = maxpool low kernel=2
g = gap n
s = linear g out=6
h = hardsigmoid s
t = mul n h
u = sigmoid t
v = mul u n
w = avgpool e kernel=2
k = concat v w
p = gap k
fc = linear p out=4
)";

void dump(const std::filesystem::path& folder, const std::string& name, TapNet net, uint64_t seed) {
  net.pixels = {{0.5f, 0.25f, 0.125f}, {1, 2, 4}};
  net.facts["seed"] = std::to_string(seed);
  write_tap(folder / (name + ".tap"), net);
  net = read_tap(folder / (name + ".tap"));  // 16-bit weights are rounded in the file

  Random random(seed, Purpose::kTest, 2);
  const Shape& in = net.graph.input().shape;
  const Shape& out = net.graph.node(net.graph.output()).shape;
  const std::vector<float> x = random_floats(static_cast<size_t>(kImages * element_count(in)), random);
  std::vector<float> y;
  for (int64_t i = 0; i < kImages; ++i) {
    const float* image = x.data() + i * element_count(in);
    const auto values = net.is_int8() ? Int8Reference(net).run(image) : run_reference(net, image);
    y.insert(y.end(), values.begin(), values.end());
  }
  const auto batched = [](Shape shape) {
    shape.insert(shape.begin(), kImages);
    return shape;
  };
  write_safetensors(folder / (name + ".safetensors"),
                    {{"x", DType::kF32, batched(in), x.data()}, {"y", DType::kF32, batched(out), y.data()}});
}

void dump_zoo(const std::filesystem::path& folder, uint64_t seed) {
  for (const ZooEntry& entry : zoo()) {
    NetSpec spec;
    spec.arch = entry.spellings.front() + (entry.depth == ZooEntry::Depth::kAppended ? "8" : "");
    spec.width = 8;
    Graph graph = build_network(spec);
    if (entry.usual_method == "sal") apply_method(graph, sal_method(), "");
    dump(folder, "zoo-" + entry.name, random_tap_net(frozen_form(graph).graph, seed), seed);
  }
}

// Every op that has an int8 form beside those of random graphs.
constexpr const char* kInt8Forms = R"(onetap-net 1
x = input 3x11x9
a = tapconv x out=20 kernel=3x5 pad=1x2 taps=2 share=3 bias=1
ra = relu a
s = shift ra kernel=3
c = conv s out=20 kernel=3 pad=1 groups=20 bias=1
b = affine c
sum = add ra b c
peak = maxpool sum kernel=3 stride=2 pad=1
mean = avgpool peak kernel=3 stride=1x2 pad=1
thin = subsample mean out=26 stride=2
deep = tapconv thin out=8 kernel=3 pad=2 dilation=2 groups=2 taps=1 bias=1
wide = conv thin out=8 kernel=3 pad=2 dilation=2
both = add deep wide
bent = relu both
flat = flatten bent
pool = gap bent
all = concat flat pool
hidden = linear all out=9
rest = relu hidden
fc = linear rest out=5
)";

void dump_int8(const std::filesystem::path& folder, uint64_t seed, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) dump(folder, "random" + std::to_string(i), random_int8_net(seed + i), seed + i);
  const TapNet forms = random_tap_net(frozen_form(parse_network(kInt8Forms)).graph, seed);
  dump(folder, "forms", quantized(forms, seed), seed);
  for (const char* share : {"4x4", "4", "1", "allx4"}) {
    for (const char shortcut : {'A', 'B'}) {
      const Graph graph = frozen_form(small_resnet(sal_method(1, parse_share(share).value()), shortcut)).graph;
      dump(folder, fmt::format("share-{}-{}", share, shortcut), quantized(random_tap_net(graph, seed), seed), seed);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  const std::string_view kind = argc == 5 ? argv[4] : "";
  if (!kind.empty() && kind != "zoo" && kind != "int8") return 2;
  const std::filesystem::path folder = argv[1];
  const auto seed = static_cast<uint64_t>(std::atoll(argv[2]));
  const auto count = static_cast<uint64_t>(std::atoll(argv[3]));
  if (kind == "int8") {
    dump_int8(folder, seed, count);
    return 0;
  }
  for (uint64_t i = 0; i < count; ++i) dump(folder, "random" + std::to_string(i), random_net(seed + i), seed + i);
  TapNet rare = random_tap_net(parse_network(kRareForms), seed);
  rare.classes = {"a", "b", "c", "d", "e"};
  dump(folder, "rare", rare, seed);
  rare.weight_type = WeightType::kF16;
  dump(folder, "rare-f16", rare, seed);
  TapNet rivals = random_tap_net(frozen_form(parse_network(kRivals)).graph, seed);
  auto* far = rivals.layers["far"].weight.data<float>();
  const float places[] = {0, 1, -1, 2, 100.5f, 0, 0.5f, -1e30f};  // whole pixels, and outside of the image
  std::copy(std::begin(places), std::end(places), far);
  dump(folder, "rivals", rivals, seed);
  rivals.weight_type = WeightType::kF16;
  dump(folder, "rivals-f16", rivals, seed);
  for (const char shortcut : {'A', 'B'}) {
    const Graph graph = frozen_form(small_resnet(sal_method(), shortcut)).graph;
    dump(folder, std::string("resnet-") + shortcut, random_tap_net(graph, seed), seed);
  }
  for (const char* share : {"4x4", "3x2", "all", "allx4"}) {
    const Graph graph = frozen_form(small_resnet(sal_method(1, parse_share(share).value()))).graph;
    dump(folder, std::string("share-") + share, random_tap_net(graph, seed), seed);
  }
  dump(folder, "imported", random_tap_net(parse_network(kImported), seed), seed);
  if (kind == "zoo") dump_zoo(folder, seed);
  return 0;
}
