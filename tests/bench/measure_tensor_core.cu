// Measures the error of one accumulation on tensor cores, c + Σ_k a_k b_k over k = 0 … 15 with float16 a, b
// and float32 c, against the exact sum: mma.sync.m16n8k16 and wgmma.m64n8k16.
//
// Prints, for each and for each family of operands, the largest error in units of u = 2^-24 times (|c| + Σ
// |a_k b_k|), and in units of u times the largest of those terms. Build: nvcc -O3 -std=c++20
// -gencode=arch=compute_90a,code=sm_90a measure_tensor_core.cu
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

namespace {

constexpr int rows = 64, columns = 8, depth = 16;

/// One product of [64,16] and [16,8], plus c [64,8]: a block of one warpgroup. a: [64][16], b: [8][16].
__global__ void accumulate(const __half* a_, const __half* b_, const float* c_, float* result_, bool wgmma) {
  const __half* a = a_ + blockIdx.x * rows * depth;
  const __half* b = b_ + blockIdx.x * columns * depth;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int row = 16 * warp + g;
  const auto pair = [](const __half* p) { return *reinterpret_cast<const std::uint32_t*>(p); };
  const std::uint32_t a0 = pair(a + row * depth + 2 * t), a1 = pair(a + (row + 8) * depth + 2 * t),
                      a2 = pair(a + row * depth + 2 * t + 8), a3 = pair(a + (row + 8) * depth + 2 * t + 8);
  const float* c = c_ + blockIdx.x * rows * columns;
  float d[4] = {c[row * columns + 2 * t], c[row * columns + 2 * t + 1], c[(row + 8) * columns + 2 * t],
                c[(row + 8) * columns + 2 * t + 1]};
  if (!wgmma) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(pair(b + g * depth + 2 * t)),
          "r"(pair(b + g * depth + 2 * t + 8)));
  } else {
    __shared__ __align__(128) __half core[2][8][8];  // [k core][column][k]
    if (threadIdx.x < columns * depth) {
      const int n = threadIdx.x / depth, k = threadIdx.x % depth;
      core[k / 8][n][k % 8] = b[n * depth + k];
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const std::uint64_t address = static_cast<std::uint32_t>(__cvta_generic_to_shared(core)) >> 4 & 0x3fff;
    const std::uint64_t descriptor = address | std::uint64_t{128 >> 4} << 16 | std::uint64_t{256 >> 4} << 32;
    asm volatile(
        "wgmma.fence.sync.aligned;\n"
        "{.reg .pred p; setp.ne.b32 p,1,0;\n"
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3},{%4,%5,%6,%7},%8,p,1,1,0;}\n"
        "wgmma.commit_group.sync.aligned;\n"
        "wgmma.wait_group.sync.aligned 0;\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(descriptor)
        : "memory");
  }
  float* result = result_ + blockIdx.x * rows * columns;
  result[row * columns + 2 * t] = d[0];
  result[row * columns + 2 * t + 1] = d[1];
  result[(row + 8) * columns + 2 * t] = d[2];
  result[(row + 8) * columns + 2 * t + 1] = d[3];
}

void require(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "measure_tensor_core: %s\n", cudaGetErrorString(status));
  std::exit(3);
}

template <class T>
T* on_device(const std::vector<T>& values) {
  T* memory;
  require(cudaMalloc(&memory, values.size() * sizeof(T)));
  require(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return memory;
}

enum class Family { normal, positive, spread, cancelling, no_accumulator, below };
constexpr const char* names[] = {"normal",
                                 "positive",
                                 "magnitudes spread by 2^±12",
                                 "c cancels the sum",
                                 "c = 0",
                                 "terms near c's last bit"};

}  // namespace

int main() {
  constexpr int blocks = 1024;
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  for (const Family family : {Family::normal, Family::positive, Family::spread, Family::cancelling,
                              Family::no_accumulator, Family::below}) {
    std::vector<__half> a(blocks * rows * depth), b(blocks * columns * depth);
    std::vector<float> c(blocks * rows * columns), result(c.size());
    const auto entry = [&] {
      float v = normal(random);
      if (family == Family::positive) v = std::abs(v);
      if (family == Family::below)
        v = std::ldexp(1 + std::abs(std::fmod(v, 1.0F)), -10 - static_cast<int>(random() % 5));
      if (family == Family::spread) v = std::ldexp(v, static_cast<int>(random() % 13) - 6);
      return __float2half(v);
    };
    for (__half& v : a) v = entry();
    for (__half& v : b) v = entry();
    const auto exact = [&](std::size_t block, int row, int column, __float128& size, __float128& largest) {
      __float128 sum = 0;
      for (int k = 0; k < depth; ++k) {
        const __float128 product =
            static_cast<__float128>(__half2float(a[(block * rows + row) * depth + k])) *
            __half2float(b[(block * columns + column) * depth + k]);
        const __float128 magnitude = product < 0 ? -product : product;
        sum += product;
        size += magnitude;
        if (magnitude > largest) largest = magnitude;
      }
      return sum;
    };
    for (std::size_t e = 0; e < c.size(); ++e) {
      __float128 size = 0, largest = 0;
      c[e] = 4 * normal(random) * static_cast<float>(std::ldexp(1.0, static_cast<int>(random() % 25) - 12));
      if (family == Family::no_accumulator) c[e] = 0;
      if (family == Family::positive) c[e] = std::abs(c[e]);
      if (family == Family::below) c[e] = 1 + std::abs(std::fmod(normal(random), 1.0F));
      if (family == Family::cancelling)
        c[e] = -static_cast<float>(exact(e / (rows * columns), static_cast<int>(e / columns % rows),
                                         static_cast<int>(e % columns), size, largest)) *
               (1 + normal(random) * 0x1p-10F);
    }
    __half *da = on_device(a), *db = on_device(b);
    float *dc = on_device(c), *dr = on_device(result);
    for (const bool wgmma : {false, true}) {
      accumulate<<<blocks, 128>>>(da, db, dc, dr, wgmma);
      require(cudaGetLastError());
      require(cudaMemcpy(result.data(), dr, result.size() * sizeof(float), cudaMemcpyDeviceToHost));
      double worst_sum = 0, worst_largest = 0;
      for (std::size_t e = 0; e < c.size(); ++e) {
        __float128 size = std::abs(c[e]), largest = size;
        const __float128 truth = c[e] + exact(e / (rows * columns), static_cast<int>(e / columns % rows),
                                              static_cast<int>(e % columns), size, largest);
        const double error = std::abs(static_cast<double>(truth - result[e])) * 0x1p24;
        worst_sum = std::fmax(worst_sum, error / static_cast<double>(size));
        worst_largest = std::fmax(worst_largest, error / static_cast<double>(largest));
        if (!(error == error)) return 1;
      }
      std::printf("%-9s %-27s %.4f u of the sum of magnitudes, %.4f u of the largest\n",
                  wgmma ? "wgmma" : "mma.sync", names[static_cast<int>(family)], worst_sum, worst_largest);
    }
    for (void* memory :
         {static_cast<void*>(da), static_cast<void*>(db), static_cast<void*>(dc), static_cast<void*>(dr)})
      require(cudaFree(memory));
  }
}
