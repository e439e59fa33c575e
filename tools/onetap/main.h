// The whole command as a function: it is in libonetap_verbs.so, which the training module shares with the program.
#pragma once

namespace onetap::tool {

// Returns the exit code.
int run_command(int argc, char** argv);

}  // namespace onetap::tool
