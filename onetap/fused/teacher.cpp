#include "onetap/fused/teacher.h"

#include "onetap/fused/autograd_network.h"

namespace onetap::fused {

Teacher::Teacher(const nn::GraphModule& module, const NetworkOptions& options, const std::shared_ptr<Ops>& ops) {
  // Nothing updates a teacher: its parameters stand in for the momenta that a network asks for.
  const nn::NamedTensors momenta = nn::state_of(*module);
  if (make_plan(module->graph()).obstacle.empty()) {
    network_ = std::make_unique<Network>(module, momenta, options, ops);
  } else {
    network_ = std::make_unique<AutogradNetwork>(module, momenta, AutogradOptions{options.type, {}, 1}, ops);
  }
  network_->pack_for_inference();
}

torch::Tensor Teacher::logits(const torch::Tensor& images) {
  const torch::NoGradGuard no_grad;
  const int64_t channels = network_->input_channels(), given = images.size(1);
  if (given == channels) return network_->infer(images);
  const auto fitting = given > channels ? images.narrow(1, 0, channels)
                                        : torch::constant_pad_nd(images, {0, 0, 0, 0, 0, channels - given}, 0);
  return network_->infer(fitting.contiguous(torch::MemoryFormat::ChannelsLast));
}

}  // namespace onetap::fused
