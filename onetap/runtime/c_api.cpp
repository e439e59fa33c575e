// The C API: checks what it is given, calls Model and Session, turns what they throw into codes.
#include "onetap/base/cpus.h"
#include "onetap/base/fail.h"
#include "onetap/base/utf8.h"
#include "onetap/base/version.h"
#include "onetap/runtime/onetap.h"
#include "onetap/runtime/session.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <limits>
#include <new>

struct onetap_session {
  onetap_session(std::shared_ptr<const onetap::Model> model, const onetap::SessionOptions& options)
      : session(std::move(model), options) {}

  onetap::Session session;
  std::atomic<bool> is_running{false};
};

namespace onetap {
namespace {

constexpr int32_t kMaxThreads = 1024;
// Of the first version of the struct, which ended with `reserved`; no program was compiled with one between the two.
constexpr size_t kFirstOptions = offsetof(onetap_options, reserved) + sizeof(onetap_options::reserved);
constexpr size_t kMostOptions = 4096;

// Plain bytes: keeping a message must not be able to fail, and a thread that ends has nothing to free in a library that
// may have been unloaded.
thread_local char last_error[1024] = "";

// `message` is one printable line; a long one is cut between two characters.
int remember(int code, const char* message) noexcept {
  size_t length = ::strnlen(message, sizeof(last_error));
  if (length == sizeof(last_error)) {
    do --length;
    while (length > 0 && (static_cast<unsigned char>(message[length]) & 0xC0u) == 0x80u);
  }
  std::memcpy(last_error, message, length);
  last_error[length] = '\0';
  return code;
}

// The only way out of the C++ side: nothing is thrown past it.
template <typename Call>
int guarded(Call&& call) noexcept {
  try {
    call();
    return ONETAP_OK;
  } catch (const Error& problem) {
    return remember(problem.exit_code(), problem.what());
  } catch (const std::bad_alloc&) {
    return remember(ONETAP_FAILURE, "[runtime] out of memory");
  } catch (const std::exception& problem) {
    try {
      return remember(ONETAP_FAILURE, printable(problem.what()).c_str());
    } catch (...) {
      return remember(ONETAP_FAILURE, "[runtime] out of memory");
    }
  } catch (...) {
    return remember(ONETAP_FAILURE, "[runtime] unknown failure");
  }
}

template <typename T>
void check_given(const T* pointer, const char* what, const char* function) {
  if (pointer == nullptr) fail_usage("[runtime] expected {}, got NULL ({})", what, function);
}

// What a caller of any age has filled in; the rest is zeros.
onetap_options read_options(const onetap_options* given) {
  onetap_options options{};
  if (given == nullptr) return options;
  const size_t size = given->size;
  const bool is_a_version = size == kFirstOptions || size >= sizeof(onetap_options);
  if (!is_a_version || size > kMostOptions) {
    fail_usage("[runtime] expected options with size = sizeof(onetap_options), got {} (onetap_open)", size);
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  const bool is_known = size <= sizeof(options) ||
                        std::all_of(bytes + sizeof(options), bytes + size, [](unsigned char b) { return b == 0; });
  std::memcpy(&options, given, std::min(size, sizeof(options)));
  if (!is_known || options.reserved != 0) {
    fail_usage("[runtime] expected options of onetap {} or before, got newer ones (onetap_open)", ONETAP_VERSION);
  }
  if (options.threads < 0 || options.threads > kMaxThreads) {
    fail_usage("[runtime] expected 0 to {} threads, got {} (onetap_open)", kMaxThreads, options.threads);
  }
  if (options.batch < 0) {
    fail_usage("[runtime] expected a batch of at least 0, got {} (onetap_open)", options.batch);
  }
  if (options.memory_limit < 0) {
    fail_usage("[runtime] expected a memory limit of at least 0, got {} (onetap_open)", options.memory_limit);
  }
  return options;
}

// One caller at a time: the second is told, where Session would mix up its values.
class CallGuard {
 public:
  CallGuard(std::atomic<bool>& is_running, const char* function) : is_running_(is_running) {
    if (is_running_.exchange(true, std::memory_order_acquire)) {
      fail_usage("[runtime] expected one caller at a time, got a second one ({})", function);
    }
  }
  CallGuard(const CallGuard&) = delete;
  CallGuard& operator=(const CallGuard&) = delete;
  ~CallGuard() { is_running_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool>& is_running_;
};

void check_count(const Model& model, int64_t count, const char* function) {
  const int64_t most = std::numeric_limits<std::ptrdiff_t>::max() / static_cast<int64_t>(sizeof(float)) /
                       std::max(model.input_floats(), model.output_floats());
  if (count < 0 || count > most) fail_usage("[runtime] expected 0 to {} images, got {} ({})", most, count, function);
}

template <typename T, typename Run>
int run_guarded(onetap_session* session, const T* images, int64_t count, const float* outputs, const char* function,
                Run&& run) {
  return guarded([&] {
    check_given(session, "a session", function);
    check_given(images, "images", function);
    check_given(outputs, "a pointer for outputs", function);
    check_count(session->session.model(), count, function);
    const CallGuard guard(session->is_running, function);
    run();
  });
}

// Channels, rows and columns; a vector has one row and one column.
void fill_shape(const Shape& from, int64_t to[3]) {
  for (size_t i = 0; i < 3; ++i) to[i] = i < from.size() ? from[i] : 1;
}

}  // namespace
}  // namespace onetap

using onetap::check_given;
using onetap::guarded;

const char* onetap_version(void) {
  return ONETAP_VERSION;
}

const char* onetap_last_error(void) {
  return onetap::last_error;
}

int onetap_open(const char* path, const onetap_options* options, onetap_session** session) {
  if (session != nullptr) *session = nullptr;
  return guarded([&] {
    check_given(session, "a pointer for the session", "onetap_open");
    check_given(path, "a path", "onetap_open");
    const onetap_options wanted = onetap::read_options(options);
    onetap::ModelOptions model;
    if (wanted.target != nullptr) model.target = wanted.target;
    model.tune = wanted.tune != 0;
    model.memory_limit = wanted.memory_limit;
    onetap::SessionOptions run;
    run.threads = wanted.threads > 0 ? wanted.threads : onetap::available_cpus();
    run.batch = std::max(1, wanted.batch);
    *session = new onetap_session(onetap::Model::open(path, model), run);
  });
}

void onetap_close(onetap_session* session) {
  delete session;
}

int onetap_input_shape(const onetap_session* session, int64_t shape[3]) {
  return guarded([&] {
    check_given(session, "a session", "onetap_input_shape");
    check_given(shape, "a pointer for three numbers", "onetap_input_shape");
    onetap::fill_shape(session->session.model().input_shape(), shape);
  });
}

int onetap_output_count(const onetap_session* session, int64_t* count) {
  return guarded([&] {
    check_given(session, "a session", "onetap_output_count");
    check_given(count, "a pointer for the count", "onetap_output_count");
    *count = session->session.model().output_floats();
  });
}

int onetap_output_shape(const onetap_session* session, int64_t shape[3]) {
  return guarded([&] {
    check_given(session, "a session", "onetap_output_shape");
    check_given(shape, "a pointer for three numbers", "onetap_output_shape");
    onetap::fill_shape(session->session.model().output_shape(), shape);
  });
}

const char* onetap_class_name(const onetap_session* session, int64_t index) {
  const char* name = nullptr;
  guarded([&] {
    check_given(session, "a session", "onetap_class_name");
    const onetap::Model& model = session->session.model();
    if (index < 0 || index >= model.output_floats()) {
      onetap::fail_usage("[runtime] expected an output below {}, got {} (onetap_class_name)", model.output_floats(),
                         index);
    }
    const auto place = static_cast<size_t>(index);
    if (place < model.classes().size()) name = model.classes()[place].c_str();
  });
  return name;
}

int onetap_pixel_scale(const onetap_session* session, float mean[3], float sd[3]) {
  return guarded([&] {
    check_given(session, "a session", "onetap_pixel_scale");
    check_given(mean, "a pointer for three means", "onetap_pixel_scale");
    check_given(sd, "a pointer for three deviations", "onetap_pixel_scale");
    const onetap::PixelScale& pixels = session->session.model().pixels();
    std::copy(pixels.mean.begin(), pixels.mean.end(), mean);
    std::copy(pixels.sd.begin(), pixels.sd.end(), sd);
  });
}

int onetap_run(onetap_session* session, const float* images, int64_t count, float* outputs) {
  return onetap::run_guarded(session, images, count, outputs, "onetap_run",
                             [&] { session->session.run(images, count, outputs); });
}

int onetap_run_u8(onetap_session* session, const uint8_t* images, int64_t count, float* outputs) {
  return onetap::run_guarded(session, images, count, outputs, "onetap_run_u8",
                             [&] { session->session.run_pixels(images, count, outputs); });
}

const char* onetap_number_type(const onetap_session* session) {
  const char* type = nullptr;
  guarded([&] {
    check_given(session, "a session", "onetap_number_type");
    type = session->session.model().is_int8() ? "int8" : "f32";
  });
  return type;
}
