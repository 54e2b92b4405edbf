// Measures the error of CUDA's expf and __expf against e^x, at every float in [-104, 0], and that of
// ex2.approx against 2^x, at every float in [-126, 16]; the truth in float64.
//
// Prints, for each: the largest relative error in units of u = 2^-24 where the result is a normal float32
// number, and the largest absolute error in units of 2^-149 below that. Build: nvcc -O3 -fmad=false
// -arch=sm_90 measure_exp.cu
#include <cstdio>
#include <cstring>

namespace {

enum Function { expf_of_cuda, fast_expf, exp2_instruction };

__device__ double error_at(Function function, float x, double& exact) {
  if (function == exp2_instruction) {
    float result;
    asm("ex2.approx.ftz.f32 %0,%1;" : "=f"(result) : "f"(x));
    exact = exp2(static_cast<double>(x));
    return fabs(static_cast<double>(result) - exact);
  }
  exact = exp(static_cast<double>(x));
  return fabs(static_cast<double>(function == fast_expf ? __expf(x) : expf(x)) - exact);
}

/// At sign·(float with bits i), i = 0 … last.
__global__ void measure(Function function, float sign, unsigned last, unsigned* normal, unsigned* small) {
  float worst_normal = 0, worst_small = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i <= last; i += gridDim.x * blockDim.x) {
    double exact;
    const double error = error_at(function, sign * __uint_as_float(i), exact);
    if (exact >= 0x1p-126)
      worst_normal = fmaxf(worst_normal, static_cast<float>(error / exact * 0x1p24));
    else
      worst_small = fmaxf(worst_small, static_cast<float>(error * 0x1p149));
  }
  // Non-negative floats are ordered as their bits are.
  atomicMax(normal, __float_as_uint(worst_normal));
  atomicMax(small, __float_as_uint(worst_small));
}

bool succeeded(cudaError_t status) {
  if (status != cudaSuccess) std::fprintf(stderr, "measure_exp: %s\n", cudaGetErrorString(status));
  return status == cudaSuccess;
}

unsigned bits(float x) {
  unsigned result;
  std::memcpy(&result, &x, sizeof result);
  return result;
}

}  // namespace

int main() {
  const struct {
    const char* name;
    Function function;
    float lowest, highest;
  } measured[] = {{"expf", expf_of_cuda, 104, 0},
                  {"__expf", fast_expf, 104, 0},
                  {"ex2.approx.ftz", exp2_instruction, 126, 16}};
  unsigned* worst;
  if (!succeeded(cudaMalloc(&worst, 2 * sizeof(unsigned)))) return 3;
  for (const auto& m : measured) {
    if (!succeeded(cudaMemset(worst, 0, 2 * sizeof(unsigned)))) return 3;
    measure<<<132 * 16, 256>>>(m.function, -1, bits(m.lowest), worst, worst + 1);
    measure<<<132 * 16, 256>>>(m.function, 1, bits(m.highest), worst, worst + 1);
    float result[2];
    if (!succeeded(cudaGetLastError()) ||
        !succeeded(cudaMemcpy(result, worst, sizeof result, cudaMemcpyDeviceToHost)))
      return 3;
    std::printf("%-14s %.6f u where the result is at least 2^-126, %.6f · 2^-149 below\n", m.name, result[0],
                result[1]);
  }
  cudaFree(worst);
}
