// onetap launch: the same command as several processes that work together, as torchrun starts them.
#include "onetap/base/fail.h"
#include "tools/onetap/console.h"
#include "tools/onetap/number_range.h"
#include "tools/onetap/processes.h"
#include "tools/onetap/verbs.h"

#include <fmt/format.h>

#include <arpa/inet.h>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <netinet/in.h>
#include <optional>
#include <sys/socket.h>
#include <unistd.h>

namespace onetap::tool {
namespace {

constexpr const char* kHere = "127.0.0.1";

struct LaunchOptions {
  int ranks = 0;
  int master_port = 0;
  double grace = 15;  // seconds
  std::string program;
  std::vector<std::string> words;
};

// A port nobody listens on at the moment.
int free_port() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, kHere, &address.sin_addr);
  socklen_t size = sizeof(address);
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto* general = reinterpret_cast<sockaddr*>(&address);
  const bool found = socket >= 0 && ::bind(socket, general, size) == 0 && ::getsockname(socket, general, &size) == 0;
  const int reason = errno;
  if (socket >= 0) ::close(socket);
  if (!found) fail("[launch] cannot find a free port: {}", std::strerror(reason));
  return ntohs(address.sin_port);
}

Command rank_command(const LaunchOptions& options, int rank, int port) {
  Command command{options.program, options.words};
  command.environment = {{"RANK", std::to_string(rank)},
                         {"LOCAL_RANK", std::to_string(rank)},
                         {"WORLD_SIZE", std::to_string(options.ranks)},
                         {"LOCAL_WORLD_SIZE", std::to_string(options.ranks)},
                         {"MASTER_ADDR", kHere},
                         {"MASTER_PORT", std::to_string(port)}};
  if (rank > 0) {
    command.out = console().is_verbose() ? Sink::kLines : Sink::kNowhere;
    command.err = Sink::kLines;
    command.on_line = [rank](std::string_view line) { console().relay(fmt::format("[rank {}] {}", rank, line)); };
  }
  return command;
}

int run_launch(const LaunchOptions& options) {
  const int port = options.master_port > 0 ? options.master_port : free_port();
  Processes ranks;
  for (int rank = 0; rank < options.ranks; ++rank) ranks.start(rank_command(options, rank, port));
  console().detail(fmt::format("{} ranks, MASTER_PORT {}", options.ranks, port));

  // A rank that ended because we passed a signal on to it; after the second signal all did.
  int interruptions = 0;
  const auto ended_as_told = [&](const Ending& ending) {
    const int number = ranks.interrupted_by();
    return interruptions > 1 || (number != 0 && (ending.signal == number || ending.exit_code == 128 + number));
  };
  bool stopped = false;
  std::optional<Processes::Event> failure;  // the first: those after it follow from it
  while (ranks.running() > 0) {
    const Processes::Event event = ranks.wait(std::chrono::hours(1));
    if (event.kind == Processes::Event::Kind::kInterrupted) ++interruptions;
    if (event.kind != Processes::Event::Kind::kEnded || !event.ending.failed()) continue;
    if (ended_as_told(event.ending)) {
      stopped = true;
    } else if (!failure) {
      failure = event;
      if (ranks.running() == 0) break;
      if (!console().is_quiet()) {
        console().relay(fmt::format("rank {} {}; ending the others", event.id, event.ending.text()));
      }
      // Ranks that are already stopping would take a second signal for an order to stop at once.
      if (ranks.interrupted_by() == 0) ranks.tell(SIGTERM);
      ranks.kill_after(std::chrono::milliseconds(std::llround(1000 * options.grace)));
    }
  }
  if (failure) {
    console().error(fmt::format("[launch] rank {} of {} {}", failure->id, options.ranks, failure->ending.text()));
    return failure->ending.signal != 0 ? 1 : failure->ending.exit_code;
  }
  return stopped ? 128 + ranks.interrupted_by() : 0;
}

}  // namespace

void add_launch(CLI::App& app, Action& action) {
  auto options = std::make_shared<LaunchOptions>();
  CLI::App* verb = app.add_subcommand("launch", "run a command as several processes that work together");
  verb->add_option("-n,--processes", options->ranks, "number of processes")
      ->required()
      ->check(CLI::Range(1, 1024))
      ->option_text("N");
  verb->add_option("--master-port", options->master_port, "port of rank 0 (default: a free port)")
      ->check(CLI::Range(1, 65535))
      ->option_text("PORT");
  verb->add_option("--grace", options->grace, "seconds that the other processes have to end after one has failed")
      ->check(number_from(0, 86400))
      ->option_text("X [15]");
  verb->add_option("--program", options->program, "start this program instead of onetap itself")->option_text("PATH");
  verb->add_option("COMMAND", options->words, "a verb and its arguments, after '--'")->required()->option_text(" ");
  verb->footer(
      "Examples:\n"
      "  onetap launch -n 2 -- train recipes/cifar10-sanet.toml --data cifar10:DIR --out runs/sanet\n"
      "  onetap launch -n 4 --master-port 29500 -- train --data shapes --threads 2 --out runs/four --resume\n"
      "\n'train' divides its work among the processes: each computes a part of every batch.\n"
      "\nRANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT are set in the environment of "
      "each\n"
      "process, as by torchrun. The output of rank 0 is shown unchanged; lines that other ranks write to stderr begin "
      "with\n"
      "'[rank 1] ', and their stdout is shown only with -v, on stderr.\n"
      "If one rank fails, the others are ended (SIGTERM, SIGKILL after --grace); the exit code is that of the rank, or "
      "1 if\n"
      "a signal ended it. Ctrl-C is forwarded to all ranks, and launch waits for them; a second one kills them.");
  verb->callback([options, &action] { action = [options] { return run_launch(*options); }; });
}

}  // namespace onetap::tool
