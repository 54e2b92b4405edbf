// One kernel twice: with the accessors, and with raw pointers when RAW_POINTERS is defined. compare_code.py
// compiles both and compares the machine code byte by byte.
#include <cstdint>

#if defined(RAW_POINTERS)

extern "C" __global__ void __launch_bounds__(128)
    twin(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ x,
         float* __restrict__ y, unsigned* __restrict__ count, std::int64_t stride, int steps) {
  __shared__ __align__(16) float tile[4 * 33];
  extern __shared__ __align__(16) unsigned char dynamic[];
  float* weights = reinterpret_cast<float*>(dynamic);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  weights[threadIdx.x] = x[threadIdx.x];
  float state = 0;
  for (int t = 0; t < steps; ++t) {
    const std::int64_t at = t * stride + lane;
    const float qi = q[at], ki = k[at];
    state = state * weights[(threadIdx.x + t) % blockDim.x] + ki;
    float sum = qi * state;
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, offset);
    tile[warp * 33 + lane] = sum;
    __syncthreads();
    const float4 four = *reinterpret_cast<const float4*>(x + 4 * threadIdx.x);
    const float other = tile[(warp ^ 1) * 33 + lane];
    float* row = y + t * stride;
    row[lane] = other + four.x * four.y + four.z * four.w;
    *reinterpret_cast<float2*>(row + (32 + 2 * threadIdx.x)) = make_float2(other, sum);
    __syncthreads();
  }
  if (lane == 0) atomicAdd(&count[warp], 1U);
}

#else

#include "gaugeblock/gpu/simt/simt.h"

namespace simt = gaugeblock::simt;

extern "C" __global__ void __launch_bounds__(128)
    twin(const float* __restrict__ q_, const float* __restrict__ k_, const float* __restrict__ x_,
         float* __restrict__ y_, unsigned* __restrict__ count_, std::int64_t stride, int steps) {
  const simt::Global<const float> q(q_), k(k_), x(x_);
  const simt::Global<float> y(y_);
  const simt::Global<unsigned> count(count_);
  GAUGEBLOCK_STATIC_SHARED(float, tile, 4 * 33);
  GAUGEBLOCK_DYNAMIC_SHARED(float, weights);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  weights[threadIdx.x] = x[threadIdx.x];
  float state = 0;
  for (int t = 0; t < steps; ++t) {
    const std::int64_t at = t * stride + lane;
    const float qi = q[at], ki = k[at];
    state = state * weights[(threadIdx.x + t) % blockDim.x] + ki;
    float sum = qi * state;
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, offset);
    tile[warp * 33 + lane] = sum;
    __syncthreads();
    const float4 four = simt::load_vector<float4>(x, 4 * threadIdx.x);
    const float other = tile[(warp ^ 1) * 33 + lane];
    const simt::Global<float> row = y + t * stride;
    row[lane] = other + four.x * four.y + four.z * four.w;
    simt::store_vector(row, 32 + 2 * threadIdx.x, make_float2(other, sum));
    __syncthreads();
  }
  if (lane == 0) atomicAdd(&count[warp], 1U);
}

#endif
