// Measures the error of CUDA's expf (and __expf) against e^x in float64, at every float in [-104, 0].
//
// Prints, for each: the largest relative error in units of u = 2^-24 where e^x is a normal float32 number,
// and the largest absolute error in units of 2^-149 below that. Build: nvcc -O3 -fmad=false -arch=sm_90
// measure_exp.cu
#include <cstdio>
#include <cstring>

namespace {

__global__ void measure(unsigned last, unsigned* normal, unsigned* small, bool fast) {
  float worst_normal = 0, worst_small = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i <= last; i += gridDim.x * blockDim.x) {
    const float x = -__uint_as_float(i);
    const double exact = exp(static_cast<double>(x));
    const double error = fabs(static_cast<double>(fast ? __expf(x) : expf(x)) - exact);
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

}  // namespace

int main() {
  const float lowest = 104;
  unsigned last;
  std::memcpy(&last, &lowest, sizeof last);
  unsigned* worst;
  if (!succeeded(cudaMalloc(&worst, 2 * sizeof(unsigned)))) return 3;
  for (const bool fast : {false, true}) {
    if (!succeeded(cudaMemset(worst, 0, 2 * sizeof(unsigned)))) return 3;
    measure<<<132 * 16, 256>>>(last, worst, worst + 1, fast);
    float result[2];
    if (!succeeded(cudaGetLastError()) ||
        !succeeded(cudaMemcpy(result, worst, sizeof result, cudaMemcpyDeviceToHost)))
      return 3;
    std::printf("%-7s %.6f u where e^x >= 2^-126, %.6f · 2^-149 below\n", fast ? "__expf" : "expf", result[0],
                result[1]);
  }
  cudaFree(worst);
}
