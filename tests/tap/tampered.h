// A good .tap file, and one change to it at a time: of metadata, tensors, bytes.
#pragma once

#include "onetap/base/safetensors.h"
#include "onetap/tap/tap_file.h"

#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

namespace onetap::testing {

class Tampered {
 public:
  Metadata metadata;
  std::vector<TensorView> tensors;

  explicit Tampered(const TapNet& net) : file_(SafetensorsFile::parse(tap_bytes(net), "good")) {
    metadata = file_.metadata();
    tensors = file_.tensors();
  }
  TensorView& tensor(const std::string& name) {
    for (TensorView& view : tensors) {
      if (view.name == name) return view;
    }
    throw std::out_of_range(name);
  }
  template <typename T>
  void set(const std::string& name, size_t at, T value) {
    TensorView& view = tensor(name);
    std::string& copy = held_.emplace_back(static_cast<const char*>(view.data), view.bytes());
    std::memcpy(&copy[at * sizeof(T)], &value, sizeof(T));
    view.data = copy.data();
  }
  std::string bytes() const { return safetensors_bytes(tensors, metadata); }

 private:
  SafetensorsFile file_;
  std::deque<std::string> held_;
};

}  // namespace onetap::testing
