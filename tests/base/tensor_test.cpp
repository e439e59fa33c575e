#include "onetap/base/tensor.h"

#include "onetap/base/error.h"

#include <gtest/gtest.h>

namespace onetap {
namespace {

TEST(Tensor, HoldsValuesOfItsTypeAlone) {
  const Tensor tensor = Tensor::of<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(tensor.dtype(), DType::kF32);
  EXPECT_EQ(tensor.count(), 6u);
  EXPECT_EQ(tensor.bytes(), 24u);
  EXPECT_EQ(tensor.data<float>()[5], 6.0f);
  EXPECT_THROW(tensor.data<int32_t>(), Error);
  EXPECT_NE(tensor, (Tensor::of<float>({1, 2, 3, 4, 5, 6}, {3, 2})));
}

TEST(Tensor, StartsAsZerosAndMayBeAbsent) {
  const Tensor zeros(DType::kI8, {3});
  EXPECT_EQ(zeros, (Tensor::of<int8_t>({0, 0, 0}, {3})));
  EXPECT_FALSE(zeros.empty());
  EXPECT_TRUE(Tensor().empty());
}

TEST(Tensor, RefusesWhatDoesNotFit) {
  EXPECT_THROW(Tensor::of<float>({1, 2}, {3}), Error);
  EXPECT_THROW(Tensor(DType::kF32, {-1}), Error);
  EXPECT_THROW(Tensor(DType::kF64, {int64_t{1} << 40, int64_t{1} << 40}), Error);
}

TEST(DTypes, AreOneTable) {
  for (const DTypeInfo& info : dtype_table()) {
    EXPECT_EQ(find_dtype(info.name), &info);
    EXPECT_EQ(&dtype_info(info.dtype), &info);
  }
  EXPECT_EQ(find_dtype("F8"), nullptr);
}

}  // namespace
}  // namespace onetap
