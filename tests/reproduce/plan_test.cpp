#include "onetap/reproduce/plan.h"

#include "onetap/base/file.h"
#include "onetap/base/text.h"
#include "onetap/graph/text.h"
#include "onetap/reproduce/pace.h"
#include "onetap/tap/random_net.h"
#include "onetap/tap/tap_file.h"
#include "tests/support/support.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace onetap {
namespace {

using testing::expect_error;
using testing::TempDir;
using Kind = Job::Kind;

JobOptions options_in(const TempDir& out) {
  JobOptions options;
  options.out = out.path();
  options.data = {
      {"cifar10", "cifar10:/ten"}, {"cifar100", "cifar100:/hundred"}, {"shapes", "shapes:train=2000,test=500"}};
  return options;
}

std::vector<Job> plan(const std::vector<std::string>& names, const JobOptions& options) {
  std::vector<const Experiment*> chosen;
  for (const std::string& name : names) chosen.push_back(&find_experiment(name));
  return plan_jobs(chosen, options);
}

std::vector<std::string> names_of(const std::vector<Job>& jobs) {
  std::vector<std::string> names;
  for (const Job& job : jobs) names.push_back(job.name);
  return names;
}

const Job& find_job(const std::vector<Job>& jobs, const std::string& name) {
  const auto found = std::find_if(jobs.begin(), jobs.end(), [&](const Job& job) { return job.name == name; });
  if (found == jobs.end()) throw std::runtime_error("no job " + name + " in " + join(names_of(jobs), ", "));
  return *found;
}

// What the trainer would leave of a finished run.
void write_run(const std::filesystem::path& directory, const std::string& config, int64_t epochs,
               bool finished = true) {
  std::filesystem::create_directories(directory / "checkpoints/last");
  write_file_atomic(directory / "config.toml", config + fmt::format("epochs = {}\n\n[provenance]\n", epochs));
  const int64_t done = finished ? epochs : epochs - 1;
  write_file_atomic(
      directory / "metrics.jsonl",
      fmt::format("{{\"step\": {}, \"epoch\": {}, \"split\": \"test\", \"loss\": 1, \"acc_soft\": 0.5, "
                  "\"acc_hard\": 0.5, \"lr\": 0.1, \"temperature\": 1, \"img_per_s\": 1, \"wall_s\": {}}}\n",
                  391 * done, done, 391 * 0.25 * static_cast<double>(done)));
  write_file_atomic(directory / "checkpoints/last/state.json",
                    fmt::format("{{\"format\": 1, \"step\": {}, \"epoch_logged\": true, \"loss_sum\": 0, \"right\": 0, "
                                "\"seen\": 0, \"temperature\": 1, \"wall_s\": 0, \"metrics_bytes\": 0, "
                                "\"attention_bytes\": 0, \"best_accuracy\": 0, \"best_step\": -1}}",
                                391 * done));
}

TEST(RunStem, IsReadable) {
  EXPECT_EQ(run_stem(find_experiment("fig-heatmaps").rows[0].run), "cifar10-resnet20-w83-sal");
  EXPECT_EQ(run_stem(find_experiment("fig-heatmaps-center").rows[0].run), "cifar10-resnet20-w83-sal-centre");
  EXPECT_EQ(run_stem(find_experiment("fig-heatmaps-5x5").rows[0].run), "cifar10-resnet20-w83-k5-sal");
  EXPECT_EQ(run_stem(find_experiment("uneven-shifts").rows[1].run), "cifar10-resnet20-w97-shift-uneven");
  EXPECT_EQ(run_stem(find_experiment("table2").rows[2].run).rfind("cifar10-resnet56-w16-scA-conv-l1-pruned-b-", 0), 0u);
}

// Two trainings must never share a directory, whatever the scale.
TEST(RunStem, DistinctTrainingsHaveDistinctPlaces) {
  for (const double scale : {1.0, 0.5467, 1.0 / 3, 0.1, 0.01}) {
    std::map<std::string, std::string> known;
    const auto add = [&](const RunSpec& spec) {
      const Recipe recipe = experiment_recipe(spec, scale);
      const std::string place = fmt::format("{}-e{}", run_stem(spec), recipe.epochs);
      const std::string what = fmt::format("{}{}{}{}{}{}", recipe_text(recipe), spec.data, static_cast<int>(spec.takes),
                                           spec.cut.by + spec.cut.ratio + spec.cut.preset,
                                           spec.source ? recipe_text(experiment_recipe(*spec.source, scale)) : "",
                                           spec.teacher ? recipe_text(experiment_recipe(*spec.teacher, scale)) : "");
      EXPECT_EQ(known.emplace(place, what).first->second, what) << place;
    };
    for (const Experiment& experiment : experiments()) {
      for (const ExperimentRow& row : experiment.rows) {
        add(row.run);
        if (row.run.source) add(*row.run.source);
        if (row.run.teacher) add(*row.run.teacher);
      }
    }
    EXPECT_GT(known.size(), 120u);
  }
}

TEST(Plan, WhatSeveralExperimentsNeedIsTrainedOnce) {
  const TempDir out;
  const auto jobs = plan({"fig-heatmaps", "uneven-shifts"}, options_in(out));
  EXPECT_EQ(names_of(jobs),
            (std::vector<std::string>{"cifar10-resnet20-w83-sal-e300-s0", "cifar10-resnet20-w97-shift-e300-s0",
                                      "cifar10-resnet20-w97-shift-uneven-e300-s0"}));
  EXPECT_EQ(jobs[2].after, std::vector<size_t>{0});
  const std::string from = "--shift-table=from:" + (out / "runs/cifar10-resnet20-w83-sal-e300-s0").string();
  EXPECT_EQ(std::count(jobs[2].arguments.begin(), jobs[2].arguments.end(), from), 1);
  EXPECT_EQ(jobs[0].steps, 300 * 391);
}

TEST(Plan, CommandOfATraining) {
  const TempDir out;
  JobOptions options = options_in(out);
  options.scale = 0.1;
  options.seeds = {3};
  options.run_fields = {{"device", "cuda"}, {"cuda_graph", "false"}};
  const auto jobs = plan({"fig-heatmaps"}, options);
  const std::string run = (out / "runs/cifar10-resnet20-w83-sal-e30-s3").string();
  EXPECT_EQ(jobs.at(0).arguments,
            (std::vector<std::string>{"train", "--arch=resnet20", "--width=83", "--method=sal", "--epochs=30",
                                      "--batch-size=128", "--lr=0.1", "--lr-every=10", "--weight-decay=0.0005",
                                      "--restart-momentum", "--t0=6.7", "--t1=0.02", "--no-cuda-graph", "--device=cuda",
                                      "--data=cifar10:/ten", "--seed=3", "--out", run, "--resume"}));
}

TEST(Plan, ChannelsAreCutBetweenTwoTrainings) {
  const TempDir out;
  JobOptions options = options_in(out);
  options.only = {"Pruned-B"};
  const auto jobs = plan({"table2"}, options);
  ASSERT_EQ(jobs.size(), 3u);
  EXPECT_EQ(jobs[0].name, "cifar10-resnet56-w16-scA-conv-e400-s0");
  EXPECT_EQ(jobs[1].kind, Kind::kCut);
  EXPECT_EQ(jobs[1].after, std::vector<size_t>{0});
  const std::filesystem::path folder = out / "cuts/cifar10-resnet56-w16-scA-conv-e400-s0-l1-pruned-b";
  EXPECT_EQ(jobs[1].arguments,
            (std::vector<std::string>{"prune", jobs[0].run.directory.string(), "--by=l1", "--preset=pruned-b",
                                      "--data=cifar10:/ten", "--seed=0", "-o", folder.string()}));
  EXPECT_EQ(jobs[2].after, std::vector<size_t>{1});
  EXPECT_EQ(jobs[2].arguments.at(1), "--arch=" + (folder / "network.txt").string());
  EXPECT_EQ(jobs[2].arguments.at(2), "--init=" + (folder / "weights.safetensors").string());
  EXPECT_EQ(jobs[2].run.epochs, 40);
  EXPECT_EQ(jobs[2].steps, 40 * 782) << "64 images a step";
  EXPECT_FALSE(jobs[1].is_done());
  std::filesystem::create_directories(folder);
  write_file_atomic(folder / "network.txt", "");
  EXPECT_FALSE(jobs[1].is_done()) << "no weights yet";
  write_file_atomic(folder / "weights.safetensors", "");
  EXPECT_TRUE(jobs[1].is_done());
}

TEST(Plan, ATeacherIsTrainedFirst) {
  const TempDir out;
  JobOptions options = options_in(out);
  options.scale = 0.1;
  options.only = {"all"};
  options.data.erase("cifar100");
  const auto jobs = plan({"learning"}, options);
  std::vector<const Job*> trainings;
  for (const Job& job : jobs) {
    if (job.kind == Kind::kTrain) trainings.push_back(&job);
  }
  ASSERT_EQ(trainings.size(), 3u);
  const auto has = [&](const Job& job, const std::string& argument) {
    return std::count(job.arguments.begin(), job.arguments.end(), argument) == 1;
  };
  EXPECT_TRUE(has(*trainings[0], "--width=56") && has(*trainings[0], "--method=conv"));
  EXPECT_TRUE(has(*trainings[1], "--width=128") && has(*trainings[1], "--method=conv"));
  const Job& student = *trainings[2];
  EXPECT_EQ(student.name.rfind("cifar10-resnet20-w56-sal-share4x4-from-conv-taught-", 0), 0u) << student.name;
  EXPECT_EQ(student.after, (std::vector<size_t>{0, 1}));
  EXPECT_TRUE(has(student, "--init=" + trainings[0]->run.directory.string()));
  EXPECT_TRUE(has(student, "--teacher=" + trainings[1]->run.directory.string()));
  EXPECT_TRUE(has(student, "--epochs=6"));
}

TEST(Plan, FilesAreFrozenTestedAndTimedAfterTheirTraining) {
  const TempDir out;
  const auto jobs = plan({"demo"}, options_in(out));
  const std::string stem = run_stem(find_experiment("demo").rows[1].run) + "-e6-s0";
  const Job& freeze = find_job(jobs, stem + " freeze");
  EXPECT_EQ(jobs[freeze.after.at(0)].name, stem);
  for (const char* made : {" eval", " bench"}) {
    const Job& job = find_job(jobs, stem + made);
    EXPECT_EQ(jobs[job.after.at(0)].name, freeze.name);
    EXPECT_EQ(job.arguments.at(1), (out / ("runs/" + stem + "/model.tap")).string());
  }
  EXPECT_EQ(jobs[find_job(jobs, stem + " eval rounded").after.at(0)].name, stem);
  EXPECT_EQ(jobs.size(), 2 * 4 + 1u) << "a dense network has nothing to round";
}

TEST(Plan, RowsWithoutDataAreLeftOut) {
  const TempDir out;
  JobOptions options = options_in(out);
  options.data.erase("cifar10");
  for (const Job& job : plan({"fig-temperature", "table2"}, options)) EXPECT_EQ(job.spec->data, "cifar100");
  EXPECT_TRUE(plan({"table-imagenet"}, options).empty());
}

TEST(Plan, ALongerRunThatIsFinishedServes) {
  const TempDir out;
  JobOptions options = options_in(out);
  options.scale = 0.1;
  const std::filesystem::path run = out / "runs/cifar10-resnet20-w83-sal-e300-s0";
  write_run(run, "", 300, /*finished=*/false);
  EXPECT_EQ(plan({"fig-heatmaps"}, options).at(0).run.epochs, 30) << "not finished";
  write_run(run, "", 300);
  EXPECT_EQ(plan({"fig-heatmaps"}, options).at(0).run.directory, run);
  EXPECT_TRUE(plan({"fig-heatmaps"}, options).at(0).is_done());
  options.seeds = {1};
  EXPECT_EQ(plan({"fig-heatmaps"}, options).at(0).run.epochs, 30) << "another seed";
  options.seeds = {0};
  options.scale = 2;
  EXPECT_EQ(plan({"fig-heatmaps"}, options).at(0).run.epochs, 600) << "longer than what is there";
}

TEST(Plan, AResultThatCannotBeReadIsMadeAgain) {
  const TempDir out;
  const auto jobs = plan({"table1"}, options_in(out));
  const auto of_kind = [&](Kind kind) {
    return *std::find_if(jobs.begin(), jobs.end(), [&](const Job& job) { return job.kind == kind; });
  };
  const Job freeze = of_kind(Kind::kFreeze), evaluate = of_kind(Kind::kEvaluate);
  std::filesystem::create_directories(freeze.output.parent_path());
  write_tap(freeze.output, random_tap_net(parse_network("onetap-net 1\nx = input 3x8x8\nc = conv x out=4\n"), 1));
  EXPECT_TRUE(freeze.is_done());
  truncate_file(freeze.output, 100);
  EXPECT_FALSE(freeze.is_done());
  std::filesystem::create_directories(evaluate.output.parent_path());
  write_file_atomic(evaluate.output, "[]");
  EXPECT_TRUE(evaluate.is_done());
  write_file_atomic(evaluate.output, "");
  EXPECT_FALSE(evaluate.is_done());
}

TEST(Plan, ResultsAverageRunsOfOneLengthAlone) {
  const TempDir out;
  const RunSpec& spec = find_experiment("fig-heatmaps").rows[0].run;
  EXPECT_TRUE(longest_finished(out.path(), spec).empty());
  for (const int seed : {0, 1, 10}) write_run(out / fmt::format("runs/{}-e30-s{}", run_stem(spec), seed), "", 30);
  write_run(out / ("runs/" + run_stem(spec) + "-centre-e300-s0"), "", 300);  // another stem
  write_run(out / ("runs/" + run_stem(spec) + "-e400-s0"), "", 400, /*finished=*/false);
  auto runs = longest_finished(out.path(), spec);
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[2].seed, 10u);
  write_run(out / ("runs/" + run_stem(spec) + "-e300-s2"), "", 300);
  runs = longest_finished(out.path(), spec);
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].epochs, 300);
}

TEST(Plan, AnotherTrainingInTheSamePlaceIsRefused) {
  const TempDir out;
  const auto jobs = plan({"fig-heatmaps"}, options_in(out));
  write_run(jobs[0].run.directory, "width = 83\nlr_every = 100\nrestart_momentum = true\n", 300);
  check_run(jobs[0]);
  write_run(jobs[0].run.directory, "width = 83\nlr_every = 10\nrestart_momentum = true\n", 300);
  expect_error(ErrorKind::kUsage, "was started with lr_every = 10, expected 100", [&] { check_run(jobs[0]); });
}

// A short look first, longer rows later, and the look once more.
TEST(Plan, ARunKeepsTheSourceThatItBeganFrom) {
  const TempDir out;
  JobOptions shortened = options_in(out);
  shortened.scale = 0.1;
  const auto is_uneven = [](const Job& job) {
    return job.kind == Job::Kind::kTrain && job.run.name.find("uneven") != std::string::npos;
  };
  const auto table_of = [](const Job& job) {
    for (const auto& [key, value] : job.settings) {
      if (key == "shift_table") return value;
    }
    return std::string();
  };
  const auto before = plan({"uneven-shifts"}, shortened);
  const Job& job = *std::find_if(before.begin(), before.end(), is_uneven);
  const std::string table = table_of(job),
                    source = "from:" + (out.path() / "runs").string() + "/cifar10-resnet20-w83-sal-e30-s0";
  ASSERT_EQ(table, source);
  const auto kept = [](const std::string& from) {
    return "width = 97\nmethod = \"shift\"\nlr_every = 10\nrestart_momentum = true\nshift_table = \"" + from + "\"\n";
  };
  write_run(out.path() / "runs/cifar10-resnet20-w83-sal-e300-s0", "width = 83\n", 300);
  for (const bool finished : {true, false}) {
    write_run(job.run.directory, kept(table), 30, finished);
    const auto after = plan({"uneven-shifts"}, shortened);
    const Job& again = *std::find_if(after.begin(), after.end(), is_uneven);
    EXPECT_EQ(table_of(again), table);
    check_run(again);
  }
  // Another source is another training.
  write_run(job.run.directory, kept("from:" + (out.path() / "runs").string() + "/cifar10-resnet20-w80-sal-e30-s0"), 30);
  const auto other = plan({"uneven-shifts"}, shortened);
  expect_error(ErrorKind::kUsage, "was started with shift_table = ", [&] {
    check_run(*std::find_if(other.begin(), other.end(), is_uneven));
  });
}

TEST(Plan, AnOutThatWasMovedIsTheSame) {
  const TempDir out;
  const Job* job = nullptr;
  const auto jobs = plan({"uneven-shifts"}, options_in(out));
  for (const Job& each : jobs) {
    if (each.kind == Job::Kind::kTrain && each.run.directory.string().find("uneven") != std::string::npos) job = &each;
  }
  ASSERT_NE(job, nullptr);
  const std::string kept = "width = 97\nmethod = \"shift\"\nlr_every = 100\nrestart_momentum = true\nshift_table = ";
  const std::string source = "/runs/cifar10-resnet20-w83-sal-e300-s0\"\n";
  write_run(job->run.directory, kept + "\"from:/elsewhere" + source, 300);
  check_run(*job);
  write_run(job->run.directory, kept + "\"from:/elsewhere/runs/another\"\n", 300);
  expect_error(ErrorKind::kUsage, "was started with shift_table = from:/elsewhere", [&] { check_run(*job); });
  write_run(job->run.directory, kept + "\"from:/elsewhere" + source, 300, /*finished=*/false);
  expect_error(ErrorKind::kUsage, "was started with shift_table = from:/elsewhere", [&] { check_run(*job); });
}

TEST(Pace, ComesFromRunsThatAreThere) {
  const TempDir out;
  const auto jobs = plan({"fig-heatmaps"}, options_in(out));
  EXPECT_FALSE(expected_pace(jobs[0], out.path(), /*on_cpu=*/true).has_value());
  const auto modelled = expected_pace(jobs[0], out.path(), false);
  EXPECT_EQ(modelled->source, "H200");
  EXPECT_NEAR(modelled->seconds_per_step, 3.6e-3, 0.2e-3) << "what was measured there";
  write_run(out / "runs/cifar10-resnet20-w83-sal-e30-s4", "", 30, /*finished=*/false);
  const auto measured = expected_pace(jobs[0], out.path(), true);
  EXPECT_EQ(measured->source, "cifar10-resnet20-w83-sal-e30-s4");
  EXPECT_NEAR(measured->seconds_per_step, 0.25, 1e-9);
}

}  // namespace
}  // namespace onetap
