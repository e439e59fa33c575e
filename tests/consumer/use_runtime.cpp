#include <iostream>
#include <onetap/count/count.h>
#include <onetap/data/source.h>
#include <onetap/graph/zoo/zoo.h>
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
  std::cout << count.params << ' ' << data.train->size() << ' ' << bytes << '\n';
  return count.params == 272474 && data.train->size() == 10 && bytes > 4 * 270000 ? 0 : 1;
}
