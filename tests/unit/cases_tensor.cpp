// Tensors between guard bands: where views lie, what counts as damage, and sizes that are refused.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/cases/tensor.h"

namespace gaugeblock {
namespace {

std::vector<float> counting(Index count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

std::uintptr_t address(const Tensor& tensor, Index position) {
  return reinterpret_cast<std::uintptr_t>(tensor.buffer.data() + position);
}

template <class Action>
std::string refusal_of(Action&& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "(not refused)";
}

TEST(CasesTensor, ContiguousIsAlignedAndPoisonedBetweenGuardBands) {
  const Tensor tensor = Tensor::contiguous({2, 3, 5});
  EXPECT_EQ(tensor.stride, (std::vector<Index>{15, 5, 1}));
  EXPECT_EQ(tensor.size(), 30);
  EXPECT_EQ(static_cast<Index>(tensor.buffer.size()), 30 + 2 * Tensor::guard_elems);
  EXPECT_EQ(tensor.offset, Tensor::guard_elems);
  EXPECT_EQ(address(tensor, 0) % 256, 0U);
  EXPECT_EQ(address(tensor, tensor.offset) % 256, 0U) << "the guard band is a multiple of 256 bytes";
  for (const float x : tensor.buffer) EXPECT_EQ(std::bit_cast<std::uint32_t>(x), poison_bits);
  EXPECT_TRUE(std::isnan(poison()));
}

TEST(CasesTensor, CopiesStayAligned) {
  const Tensor tensor = Tensor::contiguous({7});
  const Tensor copy = tensor;
  EXPECT_EQ(address(copy, 0) % 256, 0U);
}

// Layouts: dense, with gaps, dimensions swapped, stride 0, negative stride, all at once.
TEST(CasesTensor, ValuesComeBackThroughEveryLayout) {
  const std::vector<Index> shape{2, 3, 4};
  for (const std::vector<Index>& stride : std::vector<std::vector<Index>>{
           {12, 4, 1}, {100, 9, 2}, {1, 2, 6}, {-12, 4, 1}, {-1, 8, -2}, {-100, -30, -7}}) {
    for (const Index shift : {0, 1, 3}) {
      Tensor tensor = Tensor::strided(shape, stride, shift);
      tensor.assign(counting(24));
      EXPECT_EQ(tensor.values(), counting(24)) << shape_text(stride);
      EXPECT_EQ(tensor.damaged_guards(), 0) << shape_text(stride);
      const TensorView<const float, 3> view = tensor.view<3>();
      for (Index element = 0; element < 24; ++element) {
        const std::vector<Index> at = subscripts(shape, element);
        EXPECT_EQ(view(at[0], at[1], at[2]), static_cast<float>(element + 1));
        EXPECT_GE(tensor.position(element), Tensor::guard_elems + shift);
        EXPECT_LT(tensor.position(element), static_cast<Index>(tensor.buffer.size()) - Tensor::guard_elems);
      }
    }
  }
}

TEST(CasesTensor, StrideZeroRepeatsOneElement) {
  Tensor tensor = Tensor::strided({3, 2}, {0, 1});
  EXPECT_EQ(static_cast<Index>(tensor.buffer.size()), 2 + 2 * Tensor::guard_elems);
  tensor.assign({1, 2, 3, 4, 5, 6});
  EXPECT_EQ(tensor.values(), (std::vector<float>{5, 6, 5, 6, 5, 6}));
}

// Every position of the buffer in turn: damage counts exactly where the view does not reach.
TEST(CasesTensor, EveryChangedBitOutsideTheViewCounts) {
  for (const std::vector<Index>& stride :
       std::vector<std::vector<Index>>{{4, 1}, {1, 3}, {7, 2}, {0, 2}, {0, 1}, {-4, 1}, {5, -1}}) {
    Tensor tensor = Tensor::strided({3, 4}, stride, 1);
    tensor.assign(counting(12));
    std::vector<bool> in_view(tensor.buffer.size(), false);
    for (Index element = 0; element < tensor.size(); ++element)
      in_view[static_cast<std::size_t>(tensor.position(element))] = true;
    for (std::size_t position = 0; position < tensor.buffer.size(); ++position) {
      const float before = tensor.buffer[position];
      // One bit of the payload: still a NaN, but another one.
      tensor.buffer[position] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(before) ^ 1U);
      EXPECT_EQ(tensor.damaged_guards(), in_view[position] ? 0 : 1)
          << shape_text(stride) << " at " << position;
      tensor.buffer[position] = before;
    }
    EXPECT_EQ(tensor.damaged_guards(), 0);
  }
}

TEST(CasesTensor, EmptyTensorsHaveGuardsOnly) {
  Tensor tensor = Tensor::contiguous({2, 0, 3});
  EXPECT_EQ(tensor.size(), 0);
  EXPECT_TRUE(tensor.values().empty());
  tensor.assign({});
  EXPECT_EQ(tensor.damaged_guards(), 0);
  for (float& x : tensor.buffer) x = 0;
  EXPECT_EQ(tensor.damaged_guards(), static_cast<Index>(tensor.buffer.size()));
}

TEST(CasesTensor, ScalarsHaveOneElement) {
  Tensor tensor = Tensor::contiguous({});
  EXPECT_EQ(tensor.size(), 1);
  tensor.assign({3});
  EXPECT_EQ(tensor.values(), std::vector<float>{3});
  EXPECT_EQ(tensor.damaged_guards(), 0);
}

TEST(CasesTensor, SizesThatOverflowAreRefused) {
  constexpr Index huge = std::numeric_limits<Index>::max();
  EXPECT_EQ(element_count({huge}, "x"), huge);
  EXPECT_EQ(element_count({huge, 0, 1}, "x"), 0);
  EXPECT_EQ(refusal_of([] {
              element_count({huge, 2}, "x");
            }),
            "x: expected fewer than 2^63 elements; found shape [9223372036854775807,2]");
  EXPECT_EQ(refusal_of([] {
              element_count({2, -1}, "x");
            }),
            "x: expected extents of at least 0; found shape [2,-1]");
  // An extent of 0 must not hide extents whose strides would overflow.
  EXPECT_EQ(refusal_of([] {
              contiguous_strides({0, huge, 2}, "x");
            }),
            "x: expected fewer than 2^63 elements; found shape [0,9223372036854775807,2]");
  EXPECT_EQ(refusal_of([] {
              Tensor::strided({2, 3}, {huge, 1});
            }),
            "tensor: expected fewer than 2^63 elements; found shape [2,3]");
  EXPECT_EQ(refusal_of([] { Tensor::strided({2}, {std::numeric_limits<Index>::min()}); }),
            "tensor: expected fewer than 2^63 elements; found shape [2]");
  EXPECT_EQ(refusal_of([] {
              Tensor::strided({2, 3}, {1});
            }),
            "tensor: expected one stride per dimension of [2,3]; found [1]");
}

TEST(CasesTensor, SizesBeyondMemoryAreRefusedBeforeTheyAreTried) {
  const std::string refusal = refusal_of([] { Tensor::contiguous({1 << 20, 1 << 20, 1 << 10}); });
  EXPECT_EQ(refusal.find("tensor of shape [1048576,1048576,1024]: expected at most the"), 0U) << refusal;
  EXPECT_EQ(refusal.find('\n'), std::string::npos);
}

TEST(CasesTensor, AssigningAnotherNumberOfValuesIsAProgrammingError) {
  Tensor tensor = Tensor::contiguous({3});
  EXPECT_THROW(tensor.assign({1, 2}), std::invalid_argument);
}

TEST(CasesTensor, BitsDistinguishWhatComparisonDoesNot) {
  EXPECT_TRUE(same_bits(poison(), poison()));
  EXPECT_FALSE(same_bits(poison(), std::numeric_limits<float>::quiet_NaN()));
  EXPECT_FALSE(same_bits(0.0F, -0.0F));
}

TEST(CasesTensor, SubscriptsAreVisitedInCOrder) {
  std::vector<std::vector<Index>> visited;
  for_each_subscript({2, 3}, [&](const std::vector<Index>& at) { visited.push_back(at); });
  ASSERT_EQ(visited.size(), 6U);
  for (Index element = 0; element < 6; ++element)
    EXPECT_EQ(visited[static_cast<std::size_t>(element)], subscripts({2, 3}, element));
  for_each_subscript({2, 0}, [](const std::vector<Index>&) { FAIL() << "there is no element"; });
  EXPECT_EQ(shape_text({2, 128, 4, 24}), "[2,128,4,24]");
}

}  // namespace
}  // namespace gaugeblock
