#include "tools/onetap/main.h"

int main(int argc, char** argv) {
  return onetap::tool::run_command(argc, argv);
}
