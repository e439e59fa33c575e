#include <iostream>
#include <onetap/graph/text.h>
#include <onetap/onnx/import.h>
#include <onetap/onnx/writer.h>

// A model that was written is read to the same network.
int main() {
  onetap::TapNet net;
  net.graph = onetap::parse_network("onetap-net 1\nx = input 3x4x4\nr = relu6 x\np = gap r\n");
  const onetap::ImportedNet again = onetap::parse_onnx(onetap::onnx_model(net), "memory");
  std::cout << onetap::network_text(again.graph);
  return onetap::frozen_net(again).graph == net.graph ? 0 : 1;
}
