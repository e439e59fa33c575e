// Ranks as threads of one process, each with a group of its own: what they compute. tests/tools/ranks_test.py has them
// as processes.
#include "onetap/base/fail.h"
#include "onetap/data/source.h"
#include "onetap/graph/text.h"
#include "onetap/ranks/gradient_sum.h"
#include "onetap/ranks/sync_norm.h"
#include "onetap/train/evaluate.h"
#include "onetap/train/rank_share.h"
#include "tests/support/support.h"

#include <exception>
#include <map>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace onetap {
namespace {

using testing::expect_error;

// --- the environment ---------------------------------------------------------------------------------------------

RankPlace place_in(const std::map<std::string, std::string>& variables) {
  return rank_place([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional<std::string>(found->second);
  });
}

TEST(RankPlace, OneProcessWithoutAWord) {
  const RankPlace place = place_in({});
  EXPECT_FALSE(place.launched);
  EXPECT_EQ(place.size, 1);
}

TEST(RankPlace, AsTorchrunSaysIt) {
  const RankPlace place = place_in({{"RANK", "5"},
                                    {"WORLD_SIZE", "8"},
                                    {"LOCAL_RANK", "1"},
                                    {"LOCAL_WORLD_SIZE", "4"},
                                    {"MASTER_ADDR", "first"},
                                    {"MASTER_PORT", "1234"}});
  EXPECT_TRUE(place.launched);
  EXPECT_EQ(place.rank, 5);
  EXPECT_EQ(place.size, 8);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_size, 4);
  EXPECT_EQ(place.master, "first");
  EXPECT_EQ(place.port, 1234);
  // One process of torchrun is a group; where torchrun listens itself, rank 0 does beside it.
  const RankPlace one =
      place_in({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_PORT", "99"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  EXPECT_TRUE(one.launched);
  EXPECT_EQ(one.port, 100);
}

TEST(RankPlace, AsSlurmSaysIt) {
  const std::map<std::string, std::string> task = {{"SLURM_PROCID", "9"},
                                                   {"SLURM_STEP_NUM_TASKS", "10"},
                                                   {"SLURM_LOCALID", "1"},
                                                   {"SLURM_NODEID", "2"},
                                                   {"SLURM_NTASKS", "77"},
                                                   {"MASTER_ADDR", "first"},
                                                   {"SLURM_STEP_TASKS_PER_NODE", "4(x2),2"}};
  const RankPlace place = place_in(task);
  EXPECT_EQ(place.rank, 9);
  EXPECT_EQ(place.size, 10);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_size, 2);
  // A batch script without srun is one process, whatever was asked for.
  EXPECT_FALSE(place_in({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}).launched);
  EXPECT_FALSE(place_in({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}}).launched);
}

TEST(RankPlace, AsMpiSaysIt) {
  const RankPlace open = place_in({{"OMPI_COMM_WORLD_RANK", "1"},
                                   {"OMPI_COMM_WORLD_SIZE", "2"},
                                   {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  EXPECT_EQ(open.rank, 1);
  EXPECT_EQ(open.local_size, 2);
  const RankPlace other =
      place_in({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}});
  EXPECT_EQ(other.size, 2);
}

TEST(RankPlace, Refusals) {
  const auto refused = [](const char* part, const std::map<std::string, std::string>& variables) {
    expect_error(ErrorKind::kUsage, part, [&] { place_in(variables); });
  };
  refused("expected RANK below 2", {{"RANK", "2"}, {"WORLD_SIZE", "2"}});
  refused("to be a number, got 'x'", {{"RANK", "x"}, {"WORLD_SIZE", "2"}});
  refused("MASTER_PORT", {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_PORT", "70000"}});
  refused("expected MASTER_ADDR", {{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"LOCAL_WORLD_SIZE", "2"}});
}

// --- ranks as threads --------------------------------------------------------------------------------------------

int free_port() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  auto* general = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket, general, size) != 0 || ::getsockname(socket, general, &size) != 0) fail("no free port");
  ::close(socket);
  return ntohs(address.sin_port);
}

// What each rank threw, or null.
std::vector<std::exception_ptr> outcomes(int64_t ranks, const std::function<void(RankGroup&)>& work) {
  const int port = free_port();
  std::vector<std::exception_ptr> thrown(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        RankPlace place;
        place.rank = rank;
        place.size = place.local_size = ranks;
        place.port = port;
        const auto group = meet_ranks(place, std::chrono::seconds(30));
        group->start(torch::kCPU);
        work(*group);
        if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the store outlives the others
      } catch (...) {
        thrown[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return thrown;
}

void on_ranks(int64_t ranks, const std::function<void(RankGroup&)>& work) {
  for (const auto& thrown : outcomes(ranks, work)) {
    if (thrown) std::rethrow_exception(thrown);
  }
}

double distance(const torch::Tensor& a, const torch::Tensor& b) {
  return ((a - b).abs().max() / b.abs().max().clamp_min(1e-20)).item<double>();
}

TEST(RankGroup, SumsBroadcastsAndShares) {
  for (const int64_t ranks : {1, 2, 3}) {
    on_ranks(ranks, [&](RankGroup& group) {
      EXPECT_EQ(group.size(), ranks);
      const auto mine = torch::full({5}, static_cast<double>(group.rank() + 1));
      const auto pending = group.start_sum(mine);
      pending->wait();
      EXPECT_EQ(mine[3].item<double>(), static_cast<double>(ranks * (ranks + 1)) / 2);
      auto weights =
          torch::full({2, 3, 4, 4}, static_cast<double>(group.rank())).contiguous(torch::MemoryFormat::ChannelsLast);
      weights.add_(torch::arange(96).view({2, 3, 4, 4}));
      group.broadcast(weights);
      EXPECT_TRUE(weights.equal(torch::arange(96).view({2, 3, 4, 4}).to(torch::kFloat32)));
      EXPECT_EQ(group.share(group.leads() ? "from the first" : "unheard"), "from the first");
      EXPECT_TRUE(group.any(group.rank() == ranks - 1));
      EXPECT_FALSE(group.any(false));
    });
  }
}

TEST(RankGroup, TheOthersHearWhyARankLeft) {
  for (const int64_t leaver : {0, 1}) {
    const auto thrown = outcomes(3, [&](RankGroup& group) {
      if (group.rank() == leaver) {
        group.leave(ErrorKind::kData, "[data] no such file");
        return;
      }
      group.sum({1.0});
    });
    for (int64_t rank = 0; rank < 3; ++rank) {
      if (rank == leaver) continue;
      const auto& mine = thrown[static_cast<size_t>(rank)];
      ASSERT_TRUE(mine) << "rank " << rank;
      expect_error(ErrorKind::kData, "rank " + std::to_string(leaver) + " failed: [data] no such file",
                   [&] { std::rethrow_exception(mine); });
    }
  }
}

TEST(RankGroup, ARankThatIsGoneIsNamed) {
  const auto thrown = outcomes(3, [&](RankGroup& group) {
    if (group.rank() == 2) return;  // without a word
    group.sum({1.0});
  });
  for (const size_t rank : {0u, 1u}) {
    ASSERT_TRUE(thrown[rank]);
    expect_error(ErrorKind::kFailure, "rank 2 of 3 does not answer", [&] { std::rethrow_exception(thrown[rank]); });
  }
}

// --- gradients ---------------------------------------------------------------------------------------------------

TEST(GradientSum, BucketsInOrderWhateverComesFirst) {
  const std::vector<int64_t> sizes = {3, 4, 100, 1, 2};
  on_ranks(2, [&](RankGroup& group) {
    GradientSum sums(group, sizes, torch::kCPU, /*bucket_bytes=*/8 * sizeof(float));
    EXPECT_EQ(sums.buckets(), 3u);
    for (int round = 0; round < 3; ++round) {
      std::vector<size_t> order = {0, 1, 2, 3, 4};
      if (group.rank() == 1) std::reverse(order.begin(), order.end());
      for (const size_t i : order) {
        if (i == 3 && group.rank() == 1) continue;  // no gradient there
        sums.add(i, torch::full({sizes[i]}, static_cast<double>(round + 1) * static_cast<double>(i + 1)));
      }
      sums.finish();
      for (size_t i = 0; i < sizes.size(); ++i) {
        const double each = static_cast<double>(round + 1) * static_cast<double>(i + 1);
        EXPECT_TRUE(sums.sum(i).eq(i == 3 ? each : 2 * each).all().item<bool>()) << i;
      }
    }
  });
}

Graph small_network(bool norm) {
  const std::string between = norm ? "bn1 = bn conv1\nrelu1 = relu bn1\n" : "relu1 = relu conv1\n";
  const std::string after = norm ? "bn2 = bn conv2\nrelu2 = relu bn2\n" : "relu2 = relu conv2\n";
  return parse_network("onetap-net 1\nnetwork small\nx = input 3x8x8\nconv1 = conv x out=5 kernel=3 pad=1\n" + between +
                       "conv2 = conv relu1 out=6 kernel=3 pad=1 stride=2 method=sal\n" + after +
                       "pool = gap relu2\nfc = linear pool out=4\noutput fc\n");
}

// A module with weights of this name alone; threads share LibTorch's generator.
nn::GraphModule same_module(bool norm) {
  nn::GraphModule module(small_network(norm));
  const torch::NoGradGuard no_grad;
  for (auto& item : module->named_parameters()) {
    auto generator = at::detail::createCPUGenerator(item.value().numel());
    item.value().copy_(torch::randn(item.value().sizes(), generator) * 0.3);
  }
  module->set_temperature(0.7);
  return module;
}

constexpr int64_t kImages = 11;

Batch test_batch() {
  auto generator = at::detail::createCPUGenerator(5);
  return {torch::randn({kImages, 3, 8, 8}, generator), torch::randint(0, 4, {kImages}, generator, torch::kInt64), {}};
}

torch::Tensor loss_of(nn::GraphModule& module, const Batch& batch) {
  return torch::nn::functional::cross_entropy(module->forward(batch.images), batch.labels);
}

Batch slice(const Batch& batch, Portion portion) {
  return {
      batch.images.narrow(0, portion.first, portion.count), batch.labels.narrow(0, portion.first, portion.count), {}};
}

enum class Norm { kNone, kSynchronised, kPerRank };

// The gradients of a step of so many ranks, as rank 0 has them, and the running statistics.
std::vector<torch::Tensor> gradients_of(int64_t ranks, Norm norm, int64_t accumulate = 1) {
  std::vector<torch::Tensor> result;
  on_ranks(ranks, [&](RankGroup& group) {
    nn::GraphModule module = same_module(norm != Norm::kNone);
    if (norm == Norm::kSynchronised) synchronise_norms(module, group);
    RankShare share(&group);
    share.watch_gradients(module);
    const Batch mine = slice(test_batch(), portion_of(kImages, group.rank(), ranks));
    for (int64_t part = 0; part < accumulate; ++part) {
      const Portion portion = portion_of(mine.labels.size(0), part, accumulate);
      if (part + 1 == accumulate) share.expect_gradients();
      (loss_of(module, slice(mine, portion)) * (static_cast<double>(portion.count) / kImages)).backward();
    }
    share.sum_gradients();
    if (!group.leads()) return;
    for (const auto& parameter : module->parameters()) result.push_back(parameter.grad().clone());
    for (const auto& buffer : module->buffers()) result.push_back(buffer.to(torch::kFloat32));
  });
  return result;
}

std::vector<torch::Tensor> gradients_alone(bool norm) {
  nn::GraphModule module = same_module(norm);
  loss_of(module, test_batch()).backward();
  std::vector<torch::Tensor> result;
  for (const auto& parameter : module->parameters()) result.push_back(parameter.grad());
  for (const auto& buffer : module->buffers()) result.push_back(buffer.to(torch::kFloat32));
  return result;
}

void expect_equal(const std::vector<torch::Tensor>& got, const std::vector<torch::Tensor>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_LT(distance(got[i], expected[i]), 1e-5) << "tensor " << i;
}

TEST(Ranks, GradientsEqualThoseOfOneProcess) {
  for (const int64_t ranks : {2, 3}) {
    expect_equal(gradients_of(ranks, Norm::kNone), gradients_alone(false));
    expect_equal(gradients_of(ranks, Norm::kSynchronised), gradients_alone(true));
    expect_equal(gradients_of(ranks, Norm::kNone, /*accumulate=*/2), gradients_alone(false));
  }
}

// With statistics of its own, a rank's gradient is that of its images alone; they add up by their numbers of images.
TEST(Ranks, GradientsWithStatisticsPerRank) {
  const int64_t ranks = 3;
  std::vector<torch::Tensor> expected;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    nn::GraphModule module = same_module(true);
    const Portion mine = portion_of(kImages, rank, ranks);
    loss_of(module, slice(test_batch(), mine)).backward();
    const auto parameters = module->parameters();
    for (size_t i = 0; i < parameters.size(); ++i) {
      const auto part = parameters[i].grad() * (static_cast<double>(mine.count) / kImages);
      if (rank == 0)
        expected.push_back(part);
      else
        expected[i] = expected[i] + part;
    }
  }
  auto got = gradients_of(ranks, Norm::kPerRank);
  got.resize(expected.size());
  expect_equal(got, expected);
}

TEST(SyncNorm, IsBatchNormOfAllImages) {
  auto generator = at::detail::createCPUGenerator(3);
  // Far from zero: the variance must not be lost in the difference of large numbers.
  const auto x = torch::randn({kImages, 4, 6, 6}, generator) * 0.5 + 20.0;
  const auto dy = torch::randn(x.sizes(), generator);
  const auto fresh = [&] {
    torch::nn::BatchNorm2d norm(4);
    const torch::NoGradGuard no_grad;
    norm->weight.copy_(torch::arange(1, 5));
    norm->bias.copy_(torch::arange(4));
    return norm;
  };
  auto whole = fresh();
  const auto all = x.clone().requires_grad_();
  const auto expected = whole->forward(all.to(torch::kFloat32));
  expected.backward(dy);
  on_ranks(3, [&](RankGroup& group) {
    const Portion mine = portion_of(kImages, group.rank(), 3);
    auto norm = fresh();
    const auto part = x.narrow(0, mine.first, mine.count).clone().requires_grad_();
    const auto y = sync_norm(*norm, part, group);
    y.backward(dy.narrow(0, mine.first, mine.count));
    EXPECT_LT(distance(y.detach(), expected.detach().narrow(0, mine.first, mine.count)), 2e-5);
    EXPECT_LT(distance(part.grad(), all.grad().narrow(0, mine.first, mine.count)), 2e-4);
    group.sum(norm->weight.grad());
    group.sum(norm->bias.grad());
    EXPECT_LT(distance(norm->weight.grad(), whole->weight.grad()), 2e-4);
    EXPECT_LT(distance(norm->bias.grad(), whole->bias.grad()), 1e-5);
    EXPECT_LT(distance(norm->running_mean, whole->running_mean), 1e-5);
    EXPECT_LT(distance(norm->running_var, whole->running_var), 1e-5);
    EXPECT_EQ(norm->num_batches_tracked.item<int64_t>(), 1);
  });
}

// --- data --------------------------------------------------------------------------------------------------------

TEST(Ranks, TogetherTheyReadWhatOneDoes) {
  const DataSource source = open_data("shapes:train=23,test=10");
  StreamOptions options;
  options.view.size = 32;
  options.batch_size = 10;
  options.train = true;
  options.augment.kind = Augment::kPadCrop;
  options.epoch = 1;
  const auto batches = [&](Part part) {
    StreamOptions mine = options;
    mine.part = part;
    BatchStream stream(*source.train, mine);
    std::vector<Batch> all;
    for (Batch batch; stream.next(batch);) all.push_back(batch);
    return all;
  };
  const auto whole = batches({});
  std::vector<std::vector<Batch>> parts;
  for (int64_t rank = 0; rank < 3; ++rank) parts.push_back(batches({rank, 3}));
  for (size_t i = 0; i < whole.size(); ++i) {
    std::vector<torch::Tensor> images;
    for (const auto& part : parts) images.push_back(part[i].images);
    EXPECT_TRUE(torch::cat(images).equal(whole[i].images));
  }
}

TEST(Ranks, ATestGivesTheSameHoweverManyShareIt) {
  const DataSource source = open_data("shapes:train=10,test=50");
  const Graph graph = parse_network(
      "onetap-net 1\nx = input 3x32x32\nconv1 = conv x out=4 kernel=3 pad=1 stride=4\nbn1 = bn conv1\n"
      "conv2 = conv bn1 out=4 kernel=3 pad=1 method=sal\npool = gap conv2\nfc = linear pool out=10\noutput fc\n");
  torch::manual_seed(1);
  nn::GraphModule first(graph);
  EvalOptions options;
  options.stream.view.size = 32;
  options.stream.batch_size = 16;
  const auto alone = evaluate(first, *source.test, options);
  for (const int64_t ranks : {2, 3, 5}) {
    on_ranks(ranks, [&](RankGroup& group) {
      nn::GraphModule module(graph);
      const torch::NoGradGuard no_grad;
      for (const auto& item : first->named_parameters()) module->named_parameters()[item.key()].copy_(item.value());
      EvalOptions mine = options;
      mine.ranks = &group;
      mine.stream.part = group.part();
      const auto result = evaluate(module, *source.test, mine);
      ASSERT_TRUE(result);
      EXPECT_EQ(result->images, 50);
      EXPECT_EQ(result->soft.accuracy, alone->soft.accuracy);
      EXPECT_EQ(result->hard.accuracy, alone->hard.accuracy);
      EXPECT_NEAR(result->soft.loss, alone->soft.loss, 1e-6);
      // Where one is stopped, nobody has a result.
      mine.progress = [&](int64_t) { return group.rank() != 1; };
      EXPECT_FALSE(evaluate(module, *source.test, mine));
    });
  }
}

TEST(Ranks, EveryBatchMustHaveAnImageForEveryRank) {
  on_ranks(3, [&](RankGroup& group) {
    const RankShare share(&group);
    Recipe recipe;
    recipe.batch_size = 10;
    share.check_batches(recipe, 93);
    expect_error(ErrorKind::kUsage, "got a last batch of 2 (--batch-size 10): use --batch-size 11",
                 [&] { share.check_batches(recipe, 92); });
    expect_error(ErrorKind::kUsage, "at least 3 training images", [&] { share.check_batches(recipe, 2); });
    recipe.sync_norm = true;
    recipe.accumulate = 2;
    expect_error(ErrorKind::kUsage, "at least 6 images in every batch", [&] { share.check_batches(recipe, 95); });
  });
}

}  // namespace
}  // namespace onetap
