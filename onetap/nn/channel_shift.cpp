#include "onetap/nn/channel_shift.h"

#include "onetap/graph/shift.h"

namespace onetap::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// [C, count]: the row (or column) that each one of the result reads, and whether that is outside.
struct Line {
  torch::Tensor at, outside;
};

Line read_line(const torch::Tensor& shift, int64_t extent, int64_t count) {
  const auto at = torch::arange(count, shift.options()).unsqueeze(0) + shift.unsqueeze(1);
  return {at.clamp(0, extent - 1), at.lt(0).logical_or(at.ge(extent))};
}

at::MemoryFormat format_of(bool channels_last) {
  return channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
}

}  // namespace

bool lies_channels_last(const torch::Tensor& x) {
  return x.is_contiguous(at::MemoryFormat::ChannelsLast) && !x.is_contiguous();
}

ChannelIndex channel_index(const torch::Tensor& rows, const torch::Tensor& columns, Extent2 from, Extent2 to,
                           bool channels_last) {
  const torch::NoGradGuard no_grad;
  const int64_t channels = rows.size(0);
  const Line row = read_line(rows, from.h, to.h), column = read_line(columns, from.w, to.w);
  const auto channel = torch::arange(channels, rows.options()).view({-1, 1, 1});
  const auto pixel = row.at.unsqueeze(2) * from.w + column.at.unsqueeze(1);  // [C, rows, columns]
  const auto outside = row.outside.unsqueeze(2).logical_or(column.outside.unsqueeze(1));
  if (!channels_last) {
    return {(pixel + channel * from.area()).view({1, -1}), outside.reshape({1, -1}), to, channels_last};
  }
  return {(pixel * channels + channel).permute({1, 2, 0}).reshape({1, -1}), outside.permute({1, 2, 0}).reshape({1, -1}),
          to, channels_last};
}

torch::Tensor move_channels(const torch::Tensor& x, const ChannelIndex& index) {
  const torch::NoGradGuard no_grad;
  const int64_t images = x.size(0), channels = x.size(1);
  const auto whole = x.contiguous(format_of(index.channels_last));
  const auto flat = index.channels_last ? whole.permute({0, 2, 3, 1}) : whole;
  const auto moved = flat.reshape({images, -1}).gather(1, index.from.expand({images, -1}));
  moved.masked_fill_(index.outside, 0);
  if (!index.channels_last) return moved.view({images, channels, index.size.h, index.size.w});
  return moved.view({images, index.size.h, index.size.w, channels}).permute({0, 3, 1, 2});
}

namespace {

class MoveChannels : public torch::autograd::Function<MoveChannels> {
 public:
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const ChannelIndex& there,
                               const ChannelIndex& back) {
    context->save_for_backward({back.from, back.outside});
    context->saved_data["size"] = std::vector<int64_t>{back.size.h, back.size.w};
    context->saved_data["channels_last"] = back.channels_last;
    return move_channels(x, there);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const auto size = context->saved_data["size"].toIntVector();
    const ChannelIndex back{saved[0], saved[1], {size[0], size[1]}, context->saved_data["channels_last"].toBool()};
    return {move_channels(grads[0], back), {}, {}};
  }
};

}  // namespace

Moves shift_moves(const Node& node) {
  const std::vector<uint16_t> codes = shift_codes(node, node.shape.at(0));
  std::vector<int64_t> rows, columns;
  for (const int64_t code : codes) {
    rows.push_back((code / node.kernel.w - node.kernel.h / 2) * node.dilation.h);
    columns.push_back((code % node.kernel.w - node.kernel.w / 2) * node.dilation.w);
  }
  return {torch::tensor(rows, torch::kInt64), torch::tensor(columns, torch::kInt64)};
}

FixedShift::FixedShift(const Node& node) : moves_(shift_moves(node)) {}

const FixedShift::Made& FixedShift::made_for(const torch::Tensor& x) {
  const Extent2 size{x.size(2), x.size(3)};
  const bool channels_last = lies_channels_last(x);
  for (const Made& made : made_) {
    if (made.device == x.device() && made.size == size && made.there.channels_last == channels_last) return made;
  }
  const auto rows = moves_.rows.to(x.device()), columns = moves_.columns.to(x.device());
  made_.push_back({x.device(), size, channel_index(rows, columns, size, size, channels_last),
                   channel_index(-rows, -columns, size, size, channels_last)});
  return made_.back();
}

torch::Tensor FixedShift::forward(const torch::Tensor& x) {
  const Made& made = made_for(x);
  return MoveChannels::apply(x, made.there, made.back);
}

}  // namespace onetap::nn
