#include <iostream>
#include <onetap/count/count.h>
#include <onetap/data/source.h>
#include <onetap/graph/zoo/zoo.h>

int main() {
  onetap::NetSpec spec;
  spec.arch = "resnet20";
  spec.width = 16;
  const auto count = onetap::count_network(onetap::build_network(spec), onetap::CountRules::kPaper);
  const auto data = onetap::open_data("shapes:train=10,test=10");
  std::cout << count.params << ' ' << data.train->size() << '\n';
  return count.params == 272474 && data.train->size() == 10 ? 0 : 1;
}
