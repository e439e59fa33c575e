#include "onetap/base/fail.h"
#include "onetap/base/text.h"
#include "onetap/onnx/names.h"
#include "onetap/onnx/writer.h"
#include "tools/onetap/onnx.h"

namespace onetap::tool {

std::string onnx_bytes(const TapNet& net, const OnnxArguments& arguments) {
  OnnxOptions options;
  options.opset = arguments.opset;
  if (arguments.batch != "symbolic") {
    const auto batch = parse_int(arguments.batch);
    if (!batch || *batch < 1 || *batch > kMaxBatch) {
      fail_usage("[export] expected --batch symbolic or a number of images from 1 to {}, got '{}'", kMaxBatch,
                 arguments.batch);
    }
    options.batch = *batch;
  }
  options.form = arguments.form == "shift" ? OnnxForm::kShift : OnnxForm::kDense;
  return onnx_model(net, options);
}

}  // namespace onetap::tool
