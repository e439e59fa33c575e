#include "tools/onetap/open_run.h"

#include "onetap/base/cpus.h"
#include "onetap/data/source.h"
#include "onetap/tap/tap_file.h"
#include "onetap/train/resolve.h"
#include "tools/onetap/console.h"
#include "tools/onetap/offered_words.h"

namespace onetap::tool {

void RunArguments::add(CLI::App& verb, Where where) {
  verb_name = verb.get_name();
  verb.add_option("RUN", run, "a run directory")->required();
  verb.add_option("--checkpoint", checkpoint, "last, best or a step number")
      ->check(offered(checkpoint_words()))
      ->option_text("WHICH [last]");
  verb.add_option("--data", data, "shapes, cifar10[:DIR], cifar100[:DIR] or folder:DIR (default: the run's own)")
      ->check(offered(data_words()))
      ->option_text("TEXT");
  verb.add_option("--images", images, "use only the first N test images (default: all)")
      ->check(CLI::Range(1, 1 << 30))
      ->option_text("N");
  add_ema_flag(verb, no_ema);
  if (where == Where::kCpu) {
    device = "cpu";
  } else {
    verb.add_option("--device", device, "auto, cpu, cuda or cuda:N")
        ->check(offered(device_words()))
        ->option_text("TEXT [auto]");
  }
  verb.add_option("--threads", threads, "CPU threads (default: all that this process may use)")
      ->check(CLI::Range(1, 1024))
      ->option_text("N");
}

int64_t RunArguments::thread_count() const {
  return threads > 0 ? threads : available_cpus();
}

StreamOptions OpenRun::test_stream() const {
  StreamOptions stream;
  stream.view = recipe_view(recipe, graph, *source);
  stream.batch_size = recipe.batch_size;
  return stream;
}

Metadata pixel_metadata_of(const Recipe& recipe) {
  const Normalisation pixels = usual_normalisation(recipe.data, recipe.mean, recipe.sd);
  return pixel_metadata({pixels.mean, pixels.sd});
}

void add_ema_flag(CLI::App& verb, bool& no_ema) {
  verb.add_flag("--no-ema", no_ema, "use the weights of the last step instead of their moving average (runs with ema)");
}

Checkpoint open_checkpoint(const RunFiles& files, const std::string& which, nn::GraphModule& module,
                           KeptWeights weights) {
  const auto warn = [](const std::string& text) { console().warn(text); };
  return CheckpointFolder(files.checkpoints()).open(which, module, warn, weights);
}

Error at_checkpoint(const Error& problem, const OpenRun& run) {
  return Error(problem.kind(), std::string(problem.what()) + " (" + run.checkpoint.path.string() + ")");
}

namespace {

OpenRun read_files(const RunArguments& arguments) {
  torch::set_num_threads(static_cast<int>(arguments.thread_count()));
  const RunFiles files(arguments.run);
  OpenRun run;
  run.recipe = files.read_config();
  // Other data than the run's are scaled as its own were.
  const Normalisation pixels = usual_normalisation(run.recipe.data, run.recipe.mean, run.recipe.sd);
  run.recipe.mean = pixels.mean;
  run.recipe.sd = pixels.sd;
  run.graph = files.read_graph();
  return run;
}

void load(const RunArguments& arguments, OpenRun& run) {
  run.device = parse_device(arguments.device, arguments.verb_name);
  run.module = nn::GraphModule(run.graph);
  run.checkpoint = open_checkpoint(RunFiles(arguments.run), arguments.checkpoint, run.module,
                                   arguments.no_ema ? KeptWeights::kTrained : KeptWeights::kAveraged);
  run.module->to(run.device);
  run.module->set_temperature(run.checkpoint.state.temperature);
}

}  // namespace

OpenRun open_network(const RunArguments& arguments) {
  OpenRun run = read_files(arguments);
  load(arguments, run);
  return run;
}

OpenRun open_run(const RunArguments& arguments, OpenedData& opened) {
  OpenRun run = read_files(arguments);
  run.source = opened.open(arguments.data.empty() ? recipe_data(run.recipe) : absolute_data_spec(arguments.data));
  check_network(run.graph, *run.source);
  load(arguments, run);
  return run;
}

}  // namespace onetap::tool
