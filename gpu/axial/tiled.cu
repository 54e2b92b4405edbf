// Differs from all before: nothing has to fit into one block's shared memory. Each step of the pass is a
// kernel of its own over all tokens, works on tiles of 16×16, and leaves its result in global memory:
//
//     normalise:   a warp per token                                n = LayerNorm(x)
//     project:     a block per tile of (token, output)             qkv = n · W_qkvᵀ
//     attend:      a block per (sequence, head, 16 queries)        o = softmax(q kᵀ / √d) v
//     project:     a block per tile of (token, output)             y = x + (o · W_outᵀ + b_out)
//
// The attention goes over the keys twice, recomputing a tile of scores when it needs it: first for the
// largest, then for the weights, which it applies to 16 channels of v at a time; o lies in global memory
// meanwhile.
//
// Takes any L, D and heads. Sequences go through in groups, so that the workspace of 4·L·D floats a sequence
// stays within 1 GB wherever one sequence does. A tile of weights is 16 contiguous pieces of rows as PyTorch
// stores them, so nothing is transposed first. Tiles have a pitch of 17 floats: a column then lies in
// different banks. What lies outside a matrix is never loaded: it enters a tile as 0 by selection, or the
// loop ends before it.
#include <algorithm>

#include "gaugeblock/gpu/axial/copy.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace {

constexpr int tile = 16;
constexpr int pitch = tile + 1;
constexpr int threads = tile * tile;
constexpr int warps = threads / 32;
constexpr unsigned all_lanes = 0xffffffffU;

/// Sequences first … first + count - 1 of the pass, and how many tokens they have. Token t of the group is
/// token t % L of sequence first + t / L.
struct Group {
  Index first, count, tokens;
};

struct Token {
  Index b, other, l;
};

__device__ inline Token token_of(const AxialPass& pass, const Group& group, Index t) {
  const Index sequence = group.first + t / pass.L;
  return {sequence / pass.others, sequence % pass.others, t % pass.L};
}

__device__ inline float warp_sum(float value) {
  GAUGEBLOCK_UNROLL
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(all_lanes, value, offset);
  return value;
}

/// n[t,i], contiguous: a warp per token.
__global__ void __launch_bounds__(threads) normalize_kernel(AxialPass pass, Group group, float* n_) {
  const PassTensors tensors(pass);
  const simt::Global<float> n(n_);
  const Index t = static_cast<Index>(blockIdx.x) * warps + threadIdx.x / 32;
  if (t >= group.tokens) return;  // the same for all lanes of the warp
  const Token token = token_of(pass, group, t);
  const Index D = pass.D, lane = threadIdx.x % 32;
  float sum = 0;
  for (Index i = lane; i < D; i += 32) {
    const float x = tensors.x[pass.x.at(token.b, token.other, token.l, i)];
    sum += x;
  }
  const float mean = warp_sum(sum) / static_cast<float>(D);
  float squares = 0;
  for (Index i = lane; i < D; i += 32) {
    const float x = tensors.x[pass.x.at(token.b, token.other, token.l, i)];
    const float centered = x - mean;
    squares = fmaf(centered, centered, squares);
  }
  const float scale = 1.0F / sqrtf(warp_sum(squares) / static_cast<float>(D) + pass.eps);
  for (Index i = lane; i < D; i += 32) {
    const float x = tensors.x[pass.x.at(token.b, token.other, token.l, i)];
    const float weight = tensors.norm_weight[pass.norm_weight.at(i)];
    const float bias = tensors.norm_bias[pass.norm_bias.at(i)];
    n[t * D + i] = fmaf((x - mean) * scale, weight, bias);
  }
}

/// Adds Σ_i left[ty][i] · right[tx][i] over the 16 columns of two tiles.
__device__ inline float add_products(const simt::Shared<float>& left, const simt::Shared<float>& right,
                                     int ty, int tx, float sum) {
  GAUGEBLOCK_UNROLL
  for (int i = 0; i < tile; ++i) {
    const float a = left[ty * pitch + i];
    const float b = right[tx * pitch + i];
    sum = fmaf(a, b, sum);
  }
  return sum;
}

/// Tile (token, output) of `in · weightᵀ`, in: [tokens,D] contiguous, weight: [outputs,D].
/// Plain: out[t,c], contiguous. With a residual: y = x + (product + bias), by the thread that has read x.
template <bool Residual>
__global__ void __launch_bounds__(threads)
    project_kernel(AxialPass pass, Group group, const float* in_, Index outputs, float* out_) {
  const PassTensors tensors(pass);
  const simt::Global<const float> in(in_);
  GAUGEBLOCK_STATIC_SHARED(float, in_tile, tile* pitch);
  GAUGEBLOCK_STATIC_SHARED(float, weight_tile, tile* pitch);
  const int tx = static_cast<int>(threadIdx.x) % tile, ty = static_cast<int>(threadIdx.x) / tile;
  const Index D = pass.D, tiles_across = ceil_div(outputs, tile);
  const Index t0 = blockIdx.x / tiles_across * tile, c0 = blockIdx.x % tiles_across * tile;
  const Index t = t0 + ty, c = c0 + tx;  // of the result
  const bool has_result = t < group.tokens && c < outputs;

  float sum = 0;
  for (Index i0 = 0; i0 < D; i0 += tile) {
    const bool inside = i0 + tx < D;
    float x = 0, weight = 0;
    if (inside && t < group.tokens) x = in[t * D + i0 + tx];
    if (inside && c0 + ty < outputs) {
      if (Residual)
        weight = tensors.out_weight[pass.out_weight.at(c0 + ty, i0 + tx)];
      else
        weight = tensors.qkv_weight[pass.qkv_weight.at(c0 + ty, i0 + tx)];
    }
    in_tile[ty * pitch + tx] = x;
    weight_tile[ty * pitch + tx] = weight;
    __syncthreads();  // both tiles are complete before they are used
    if (has_result) sum = add_products(in_tile, weight_tile, ty, tx, sum);
    __syncthreads();  // both tiles are used before the next ones overwrite them
  }
  if (!has_result) return;
  if (Residual) {
    const Token token = token_of(pass, group, t);
    const float bias = tensors.out_bias[pass.out_bias.at(c)];
    const float x = tensors.x[pass.x.at(token.b, token.other, token.l, c)];
    tensors.y[pass.y.at(token.b, token.other, token.l, c)] = x + (sum + bias);
  } else {
    const simt::Global<float> out(out_);
    out[t * outputs + c] = sum;
  }
}

/// o[t,c] of one head and as many queries as the block has rows of 16 threads. Thread (ty, tx) has the score
/// of query ty and key tx, and channels tx, tx + 16, … of query ty's o.
__global__ void __launch_bounds__(threads) attend_kernel(AxialPass pass, const float* qkv_, float* o_) {
  const simt::Global<const float> qkv(qkv_);
  const simt::Global<float> o(o_);
  GAUGEBLOCK_STATIC_SHARED(float, q_tile, tile* pitch);
  GAUGEBLOCK_STATIC_SHARED(float, k_tile, tile* pitch);
  GAUGEBLOCK_STATIC_SHARED(float, v_tile, tile* pitch);
  GAUGEBLOCK_STATIC_SHARED(float, weight, tile* pitch);
  const int tx = static_cast<int>(threadIdx.x) % tile, ty = static_cast<int>(threadIdx.x) / tile;
  const int rows = static_cast<int>(blockDim.x) / tile;
  const Index L = pass.L, D = pass.D, d = D / pass.heads, query_tiles = ceil_div(L, rows);
  const Index query = blockIdx.x % query_tiles * rows + ty, sequence_head = blockIdx.x / query_tiles;
  const Index head = sequence_head % pass.heads, first_token = sequence_head / pass.heads * L;
  const float scale = 1.0F / sqrtf(static_cast<float>(d));

  // Element `channel` of the head, of q (part 0), k (1) or v (2); 0 outside.
  const auto load = [&](int part, Index token, Index channel) {
    float value = 0;
    if (token < L && channel < d)
      value = qkv[(first_token + token) * (3 * D) + part * D + head * d + channel];
    return value;
  };
  // Keys of the tile that begins at key0. Rows of k_tile and v_tile from there on are neither written nor
  // read.
  const auto keys_from = [&](Index key0) { return static_cast<int>(L - key0 < tile ? L - key0 : tile); };
  // Score of this thread's query and key; 0 where there is no such query or key.
  const auto logit = [&](Index key0) {
    const int keys = keys_from(key0);
    float sum = 0;
    for (Index i0 = 0; i0 < d; i0 += tile) {
      q_tile[ty * pitch + tx] = load(0, query, i0 + tx);
      for (int row = ty; row < keys; row += rows) k_tile[row * pitch + tx] = load(1, key0 + row, i0 + tx);
      __syncthreads();  // both tiles are complete before they are used
      if (query < L && tx < keys) sum = add_products(q_tile, k_tile, ty, tx, sum);
      __syncthreads();  // both tiles are used before the next ones overwrite them
    }
    return sum * scale;
  };

  float largest = -INFINITY;
  for (Index key0 = 0; key0 < L; key0 += tile) {
    const float z = logit(key0);
    if (tx < keys_from(key0)) largest = fmaxf(largest, z);
  }
  GAUGEBLOCK_UNROLL
  for (int offset = tile / 2; offset > 0; offset /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(all_lanes, largest, offset, tile));

  float sum = 0;
  for (Index key0 = 0; key0 < L; key0 += tile) {
    const int keys = keys_from(key0);
    const float z = logit(key0);
    if (tx < keys) {
      const float w = expf(z - largest);
      sum += w;
      weight[ty * pitch + tx] = w;
    }
    for (Index channel0 = 0; channel0 < d; channel0 += tile) {
      for (int row = ty; row < keys; row += rows)
        v_tile[row * pitch + tx] = load(2, key0 + row, channel0 + tx);
      __syncthreads();  // weights and v are complete before they are used
      if (query < L && channel0 + tx < d) {
        const Index at = (first_token + query) * D + head * d + channel0 + tx;
        float weighted = 0;
        if (key0 > 0) weighted = o[at];
        for (int key = 0; key < keys; ++key) {
          const float w = weight[ty * pitch + key];
          const float v = v_tile[key * pitch + tx];
          weighted = fmaf(w, v, weighted);
        }
        o[at] = weighted;
      }
      __syncthreads();  // v is used before the next channels overwrite it
    }
  }
  GAUGEBLOCK_UNROLL
  for (int offset = tile / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(all_lanes, sum, offset, tile);
  if (query >= L) return;
  for (Index channel = tx; channel < d; channel += tile) {
    const Index at = (first_token + query) * D + head * d + channel;
    const float weighted = o[at];
    o[at] = weighted / sum;
  }
}

/// Queries of a block of attend_kernel: 16, or the next power of two for a shorter sequence, and whole warps.
int query_rows(Index L) {
  int rows = 2;
  while (rows < L && rows < tile) rows *= 2;
  return rows;
}

Index workspace_floats(const AxialPass& pass) {
  return 4 * pass.L * pass.D;  // of one sequence
}

/// What a group of sequences may take. Little on the interpreter, so that small problems have several groups.
constexpr Index group_floats = Index{1} << (simt::interpreted ? 14 : 28);

std::optional<std::string> declines(const AxialArguments& arguments) {
  return passes_decline(arguments, [](const AxialPass& pass) {
    if (auto reason = too_much_workspace(workspace_floats(pass))) return reason;
    return copy_declines(pass.sequences() * pass.L * pass.D);
  });
}

void run_pass(const AxialPass& pass, LaunchContext& context) {
  const Index fitting = std::max(group_floats / workspace_floats(pass), Index{1});
  const Index at_once = std::min(fitting, pass.sequences());
  const Index L = pass.L, D = pass.D;
  const int rows = query_rows(L);
  const DeviceBuffer n(*context.device, at_once * L * D, "n");  // then o
  const DeviceBuffer qkv(*context.device, at_once * L * 3 * D, "qkv");
  for (Index first = 0; first < pass.sequences(); first += at_once) {
    const Index count = std::min(at_once, pass.sequences() - first);
    const Group group{first, count, count * L};
    const Index token_tiles = ceil_div(group.tokens, tile);
    launch(GAUGEBLOCK_KERNEL(normalize_kernel), grid_of(ceil_div(group.tokens, warps)), dim3(threads), 0,
           context, pass, group, n.data());
    launch(GAUGEBLOCK_KERNEL(project_kernel<false>), grid_of(token_tiles * ceil_div(3 * D, tile)),
           dim3(threads), 0, context, pass, group, n.data(), 3 * D, qkv.data());
    float* o = n.data();
    launch(GAUGEBLOCK_KERNEL(attend_kernel), grid_of(count * pass.heads * ceil_div(L, rows)),
           dim3(static_cast<unsigned>(rows * tile)), 0, context, pass, qkv.data(), o);
    launch(GAUGEBLOCK_KERNEL(project_kernel<true>), grid_of(token_tiles * ceil_div(D, tile)), dim3(threads),
           0, context, pass, group, o, D, nullptr);
  }
}

void run(const AxialArguments& arguments, LaunchContext& context) {
  run_passes(arguments, context, [&](const AxialPass& pass, bool) { run_pass(pass, context); });
}

}  // namespace

AxialKernel tiled() {
  return {"tiled",
          "every step a kernel over tiles of 16x16: any L, D and heads, nothing has to fit into a block",
          "unfused", declines, run};
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
