// Channels of images moved by whole pixels, each its own way, with zeros coming in from outside: the op `shift`.
#pragma once

#include "onetap/graph/graph.h"
#include "onetap/nn/torch.h"

#include <vector>

namespace onetap::nn {

// Where every value of a moved image comes from: y[n, c, h, w] = x[n, c, h + rows[c], w + columns[c]]. In the memory
// order of the images, which is rows of pixels for each channel, or pixels with their channels (channels last).
struct ChannelIndex {
  torch::Tensor from;     // [1, values of y]: places in an image of x; any place where there is none
  torch::Tensor outside;  // [1, values of y]: true where zeros come in
  Extent2 size;           // of y, in pixels
  bool channels_last = false;
};

// rows, columns: int64 [C], on the device of the result. Nothing waits for the device.
ChannelIndex channel_index(const torch::Tensor& rows, const torch::Tensor& columns, Extent2 from, Extent2 to,
                           bool channels_last);

// What the channels of a shift node read: rows farther down and columns farther to the right, int64 [C].
struct Moves {
  torch::Tensor rows, columns;
};
Moves shift_moves(const Node& node);

bool lies_channels_last(const torch::Tensor& x);

// Without a gradient of its own.
torch::Tensor move_channels(const torch::Tensor& x, const ChannelIndex& index);

// The op `shift` of a node: every channel by whole pixels, as the table of graph/shift.h says.
class FixedShift {
 public:
  explicit FixedShift(const Node& node);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  // The table does not change, so what follows from it is made once for every device and memory order.
  struct Made {
    torch::Device device;
    Extent2 size;
    ChannelIndex there, back;
  };
  const Made& made_for(const torch::Tensor& x);

  const Moves moves_;
  std::vector<Made> made_;
};

}  // namespace onetap::nn
