// A process that is spoken to line by line.
#pragma once

#include <cstdio>
#include <string>
#include <sys/types.h>
#include <vector>

namespace onetap::tool {

class Child {
 public:
  // Starts words[0], found on PATH, with the others as its arguments. Its stderr is ours. MissingPeer if there is
  // no such program.
  explicit Child(const std::vector<std::string>& words);
  // Closes its stdin and waits for it to end.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void write_line(const std::string& line);
  // Without its end; empty once the process has ended.
  std::string read_line();

 private:
  pid_t pid_ = -1;
  FILE* to_ = nullptr;
  FILE* from_ = nullptr;
};

}  // namespace onetap::tool
