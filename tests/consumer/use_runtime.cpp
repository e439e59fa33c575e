#include <iostream>
#include <onetap/count/count.h>
#include <onetap/data/source.h>
#include <onetap/graph/text.h>
#include <onetap/graph/zoo/zoo.h>
#include <onetap/plan/execution_plan.h>
#include <onetap/runtime/session.h>
#include <onetap/tap/fold.h>
#include <onetap/tap/tap_file.h>

int main() {
  onetap::NetSpec spec;
  spec.arch = "resnet20";
  spec.width = 16;
  const onetap::Graph graph = onetap::build_network(spec);
  const auto count = onetap::count_network(graph, onetap::CountRules::kPaper);
  const auto data = onetap::open_data("shapes:train=10,test=10");
  const auto bytes = onetap::tap_length(onetap::frozen_form(graph).graph, onetap::WeightType::kF32);
  onetap::TapNet net;
  net.graph = onetap::parse_network("onetap-net 1\nx = input 3x4x4\np = gap x\n");
  const auto arena = onetap::plan_execution(net.graph).arena_bytes;
  onetap::Session session(std::make_shared<const onetap::Model>(net));
  const std::vector<float> image(3 * 4 * 4, 1.0f);
  std::vector<float> means(3);
  session.run(image.data(), 1, means.data());
  std::cout << count.params << ' ' << data.train->size() << ' ' << bytes << ' ' << arena << '\n';
  return count.params == 272474 && data.train->size() == 10 && bytes > 4 * 270000 && arena == 3 * 4 &&
                 means == std::vector<float>(3, 1.0f)
             ? 0
             : 1;
}
