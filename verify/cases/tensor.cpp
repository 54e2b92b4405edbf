#include "gaugeblock/verify/cases/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "gaugeblock/verify/cases/errors.h"

namespace gaugeblock {
namespace {

constexpr Index largest_index = std::numeric_limits<Index>::max();

[[noreturn]] void refuse_size(const std::vector<Index>& shape, const std::string& what) {
  throw InputError(
      fmt::format("{}: expected fewer than 2^63 elements; found shape {}", what, shape_text(shape)));
}

/// The product of two numbers that are not negative.
Index checked_product(Index a, Index b, const std::vector<Index>& shape, const std::string& what) {
  if (b != 0 && a > largest_index / b) refuse_size(shape, what);
  return a * b;
}

Index checked_sum(Index a, Index b, const std::vector<Index>& shape, const std::string& what) {
  if (a > largest_index - b) refuse_size(shape, what);
  return a + b;
}

/// Distance in elements between the element (0, …, 0) and the lowest and the highest address of a view.
struct Reach {
  Index below = 0;
  Index above = 0;
};

Reach reach(const std::vector<Index>& shape, const std::vector<Index>& stride, const std::string& what) {
  Reach reached;
  for (std::size_t dimension = 0; dimension < shape.size(); ++dimension) {
    if (stride[dimension] == std::numeric_limits<Index>::min()) refuse_size(shape, what);
    const Index step = stride[dimension] < 0 ? -stride[dimension] : stride[dimension];
    const Index distance = checked_product(std::max<Index>(shape[dimension], 1) - 1, step, shape, what);
    Index& side = stride[dimension] < 0 ? reached.below : reached.above;
    side = checked_sum(side, distance, shape, what);
  }
  return reached;
}

/// Whether the view reaches every element between its lowest and its highest address.
bool is_gapless(const Tensor& tensor) {
  std::vector<std::pair<Index, Index>> stride_and_extent;
  for (std::size_t dimension = 0; dimension < tensor.shape.size(); ++dimension)
    if (tensor.shape[dimension] > 1 && tensor.stride[dimension] != 0)
      stride_and_extent.emplace_back(std::abs(tensor.stride[dimension]), tensor.shape[dimension]);
  std::sort(stride_and_extent.begin(), stride_and_extent.end());
  Index expected = 1;
  for (const auto& [stride, extent] : stride_and_extent) {
    if (stride != expected) return false;
    expected *= extent;
  }
  return true;
}

/// Calls visit(position in the buffer) for every element in C order.
template <class Visitor>
void for_each_position(const Tensor& tensor, Visitor&& visit) {
  if (tensor.size() == 0) return;
  if (tensor.rank() == 0) {
    visit(tensor.offset);
    return;
  }
  const std::size_t last = tensor.shape.size() - 1;
  const std::vector<Index> rows(tensor.shape.begin(), tensor.shape.end() - 1);
  for_each_subscript(rows, [&](const std::vector<Index>& at) {
    Index position = std::inner_product(at.begin(), at.end(), tensor.stride.begin(), tensor.offset);
    for (Index i = 0; i < tensor.shape[last]; ++i, position += tensor.stride[last]) visit(position);
  });
}

}  // namespace

float poison() {
  return std::bit_cast<float>(poison_bits);
}

Tensor Tensor::contiguous(std::vector<Index> shape) {
  std::vector<Index> stride = contiguous_strides(shape, "tensor");
  return strided(std::move(shape), std::move(stride));
}

Tensor Tensor::strided(std::vector<Index> shape, std::vector<Index> stride, Index shift) {
  const std::string what = "tensor";
  if (shape.size() != stride.size())
    throw InputError(fmt::format("{}: expected one stride per dimension of {}; found {}", what,
                                 shape_text(shape), shape_text(stride)));
  const Index count = element_count(shape, what);
  const Reach reached = count == 0 ? Reach{} : reach(shape, stride, what);
  Index length = checked_sum(reached.below, reached.above, shape, what);
  length = checked_sum(length, 2 * guard_elems + shift + (count == 0 ? 0 : 1), shape, what);
  require_memory(static_cast<double>(length), fmt::format("tensor of shape {}", shape_text(shape)));
  Tensor tensor;
  tensor.offset = guard_elems + shift + reached.below;
  try {
    tensor.buffer.assign(static_cast<std::size_t>(length), poison());
  } catch (const std::exception&) {  // bad_alloc or length_error
    throw InputError(
        fmt::format("tensor of shape {}: expected it to fit into memory; found no room for {} floats",
                    shape_text(shape), length));
  }
  tensor.shape = std::move(shape);
  tensor.stride = std::move(stride);
  return tensor;
}

Index Tensor::size() const {
  return element_count(shape, "tensor");
}

Index Tensor::position(Index element) const {
  Index at = offset;
  for (std::size_t dimension = shape.size(); dimension-- > 0;) {
    at += element % shape[dimension] * stride[dimension];
    element /= shape[dimension];
  }
  return at;
}

std::vector<float> Tensor::values() const {
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(size()));
  for_each_position(*this,
                    [&](Index position) { values.push_back(buffer[static_cast<std::size_t>(position)]); });
  return values;
}

void Tensor::assign(const std::vector<float>& values) {
  if (static_cast<Index>(values.size()) != size())
    throw std::invalid_argument(fmt::format("Tensor::assign: expected {} values for shape {}; found {}",
                                            size(), shape_text(shape), values.size()));
  auto value = values.begin();
  for_each_position(*this, [&](Index position) { buffer[static_cast<std::size_t>(position)] = *value++; });
}

Index Tensor::damaged_guards() const {
  Index damaged = 0;
  const auto count_damaged = [&](Index from, Index to) {
    for (Index position = from; position < to; ++position)
      if (std::bit_cast<std::uint32_t>(buffer[static_cast<std::size_t>(position)]) != poison_bits) ++damaged;
  };
  const Index end = static_cast<Index>(buffer.size());
  if (size() == 0) {
    count_damaged(0, end);
  } else if (is_gapless(*this)) {
    const Reach reached = reach(shape, stride, "tensor");
    count_damaged(0, offset - reached.below);
    count_damaged(offset + reached.above + 1, end);
  } else {
    std::vector<bool> in_view(buffer.size(), false);
    for_each_position(*this, [&](Index position) { in_view[static_cast<std::size_t>(position)] = true; });
    for (Index position = 0; position < end; ++position)
      if (!in_view[static_cast<std::size_t>(position)]) count_damaged(position, position + 1);
  }
  return damaged;
}

Index element_count(const std::vector<Index>& shape, const std::string& what) {
  // Extents of 0 are left out of the product so that the strides of an empty tensor cannot overflow either.
  Index count = 1;
  bool empty = false;
  for (const Index extent : shape) {
    if (extent < 0)
      throw InputError(
          fmt::format("{}: expected extents of at least 0; found shape {}", what, shape_text(shape)));
    if (extent == 0)
      empty = true;
    else
      count = checked_product(count, extent, shape, what);
  }
  return empty ? 0 : count;
}

std::vector<Index> contiguous_strides(const std::vector<Index>& shape, const std::string& what) {
  element_count(shape, what);
  std::vector<Index> stride(shape.size());
  Index step = 1;
  for (std::size_t dimension = shape.size(); dimension-- > 0;) {
    stride[dimension] = step;
    step *= std::max<Index>(shape[dimension], 1);
  }
  return stride;
}

void require_memory(double elements, const std::string& what) {
  static const double available =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  const double needed = elements * static_cast<double>(sizeof(float));
  if (available > 0 && needed > available)
    throw InputError(
        fmt::format("{}: expected at most the {:.3g} bytes of this machine's memory; found {:.3g} bytes",
                    what, available, needed));
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

std::string shape_text(const std::vector<Index>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

std::vector<Index> subscripts(const std::vector<Index>& shape, Index element) {
  std::vector<Index> at(shape.size());
  for (std::size_t dimension = shape.size(); dimension-- > 0;) {
    at[dimension] = element % shape[dimension];
    element /= shape[dimension];
  }
  return at;
}

}  // namespace gaugeblock
