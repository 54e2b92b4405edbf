// Differs from `chunked`: chunks of 64 steps, their matrix products on the tensor cores in split float16, the
// state in registers, and everything of a chunk in one block. Where there are too few (b,h) for all
// multiprocessors, time is cut into segments, whose states are computed by a launch of their own before.
// CUDA on sm_90a only.
//
//     x = high + low in float16 (22 bits)        a·b ≈ high·low + low·high + high·high, sums in float32
//
// Range is never assumed. Each row of q, k and v is scaled by a power of two of its own, so that its largest
// entry lies in [2^14, 2^15); so is each row of weights P_ts = (q_t·k_s) (Π gate) beta_s, and the state as a
// whole. Scales of k and v go into beta, those of q and P into y: all are exact. Decays are products of gates
// inside a chunk: no logarithm, no division, any gate.
//
// Where that does not hold a problem (four neighbours of a row below 2^-17 of its largest, which would lose
// digits; an infinity or NaN; products near the end of float32's range) a step is called bad. `repair_kernel`
// follows: it does nothing for a (b,h) without one, and otherwise computes it step by step in float32 and
// replaces the outputs from the first bad step on. So y_t depends on steps up to t only, bit for bit.
//
// A block: one (b,h), 64 columns of v, one segment. Warpgroups:
//     0      outputs:  Y = A (Q S) + P V,  P = mask(Q Kᵀ)
//     1      state:  S ← G S + Kᵀ W  in float32, and its split copy for warpgroup 0; decay tables
//     2, 3   load, scale and split q, k, v, and W = (what gates leave of beta) v, two chunks in flight
//
// Takes any T, K and V up to 128 (padded to 64 or 128 by zeros), any strides.
//
// What bounds it: instructions of warpgroups 2 and 3. K = V = 128 needs 84 products of 64×64×16 a chunk and
// block, 32 cycles each of the tensor core and of shared memory, where both operands come from: 2700 cycles.
// A chunk takes 11 000 (B=4, T=4096, H=16 on an H200), because loading, scaling and splitting 24 576 numbers
// takes 1100 instructions a thread, issued every sixth cycle: they wait for each other's results (Nsight
// Compute: stall "wait"), not for memory. The outputs' chain of one chunk, 7000 cycles, comes next. A further
// gain needs fewer instructions there (Q as register fragments of warpgroup 0, the decay on K instead of a
// second V tile), and then two warpgroups of outputs.
#include <cfloat>
#include <climits>
#include <cstdint>

#include "gaugeblock/gpu/recurrence/hopper_matrix.h"
#include "gaugeblock/gpu/recurrence/kernel_views.h"
#include "gaugeblock/gpu/runtime/device_buffer.h"

namespace gaugeblock::gpu {
namespace GAUGEBLOCK_BACKEND {
namespace {

using namespace hopper;

constexpr int chunk = 64;
constexpr int columns = 64;  // of v, of a block
constexpr int most_columns = 128;
constexpr int load_groups = 2;  // warpgroups that load
constexpr int no_bad_step = INT_MAX;
constexpr int tile_bytes = 64 * 64 * 2;  // 64 × 64 float16

/// Rows are scaled so that their largest entry lies in [2^14, 2^15): float16 ends at 65504.
constexpr int top_exponent = 14;
/// Below it a scaled entry has fewer than 22 bits: 2^-25 is half the distance of subnormal float16.
constexpr float full_precision = 0x1p-3F;
/// Factors beyond it leave too little of float32's range for what multiplies them.
constexpr float large_factor = 0x1p80F;

/// How a launch is cut up.
struct Cut {
  int column_blocks, segments, chunks_of_segment;
};

/// Whether four neighbours in q, k and v are one load, and two in y one store.
struct Vectors {
  bool inputs, y;
};

/// Decay tables of a chunk. A block is 16 steps.
struct Tables {
  float prefix[chunk];  // Π gate from the start of the block to here
  float gate[chunk];
  float beta[chunk];         // beta_s · 2^(exponents of the rows k_s and v_s)
  float suffix_beta[chunk];  // the same times Π gate from here to the end of the block
  float before[4];           // Π gate of the blocks before
  float between[4][3];       // [w][b]: Π gate of the blocks between block b and block w
  float decay;               // Π gate of the chunk
  float write_unit;          // 2^e of the scaled writes W
  float unused[2];
};

/// Shared memory, in bytes. NP: K / 64. A stage holds a chunk's operands, each as high and low.
template <int NP, bool Outputs>
struct Place {
  static constexpr int k_high = 0, k_low = NP * tile_bytes, w_high = 2 * NP * tile_bytes,
                       w_low = w_high + tile_bytes, q_high = w_low + tile_bytes,
                       q_low = q_high + NP * tile_bytes, v_high = q_low + NP * tile_bytes,
                       v_low = v_high + tile_bytes;
  static constexpr int stage = Outputs ? v_low + tile_bytes : q_high;
  static constexpr int s_high = 2 * stage, s_low = s_high + (Outputs ? NP * tile_bytes : 0);
  static constexpr int tables = s_low + (Outputs ? NP * tile_bytes : 0);
  static constexpr int write_scale = tables + 2 * static_cast<int>(sizeof(Tables));
  static constexpr int exponents = write_scale + chunk * 4;  // of rows: k, v, q of stage 0, then of stage 1
  static constexpr int state_largest = exponents + 2 * 3 * chunk;
  static constexpr int state_exponent = state_largest + 2 * 4 * 4;
  static constexpr int bad_step = state_exponent + 2 * 4;
  static constexpr int barriers = bad_step + 8;
  static constexpr int bytes = barriers + 16 * 8;
};

/// Barriers, two each: of stage 0 and 1, or of even and odd chunks.
enum Barrier { qk_full, v_full, qk_empty, v_empty, state_ready, state_free, tables_ready, exponents_ready };

template <int NP, bool Outputs>
struct Block {
  using At = Place<NP, Outputs>;
  char* memory;
  std::uint32_t base;
  int bh, b, h, first_column, first_step, chunks;

  __device__ std::uint32_t barrier(Barrier which, int stage) const {
    return base + At::barriers + 8 * (2 * which + stage);
  }
  __device__ void wait(Barrier which, int c) const { barrier_wait(barrier(which, c & 1), (c >> 1) & 1); }
  /// For the part of a stage that chunk c - 2 had.
  __device__ void wait_empty(Barrier which, int c) const {
    if (c >= 2) barrier_wait(barrier(which, c & 1), ((c >> 1) - 1) & 1);
  }
  /// Every thread of a warp arrives for itself.
  __device__ void arrive(Barrier which, int c) const { barrier_arrive(barrier(which, c & 1)); }
  __device__ Tables& tables(int c) const { return reinterpret_cast<Tables*>(memory + At::tables)[c & 1]; }
  __device__ signed char* exponents(int c, int which) const {
    return reinterpret_cast<signed char*>(memory + At::exponents) + (c & 1) * 3 * chunk + which * chunk;
  }
  __device__ float* write_scale() const { return reinterpret_cast<float*>(memory + At::write_scale); }
  __device__ float* state_largest() const { return reinterpret_cast<float*>(memory + At::state_largest); }
  __device__ int* state_exponent() const { return reinterpret_cast<int*>(memory + At::state_exponent); }
  __device__ int* bad_step() const { return reinterpret_cast<int*>(memory + At::bad_step); }
  __device__ void call_bad(int step) const { atomicMin(bad_step(), step); }
};

// ---- loading ----

/// The rows of one tensor that a thread of the loading warpgroups brings: of each 32 rows one, of which it
/// has a quarter or an eighth. Eight threads have a row; rows four apart meet no bank twice.
struct Rows {
  const float* data;  // this thread's first column of the row to come

  /// Columns 0 … 3, 32 … 35, … from there; zeros for what does not exist. `width`: columns from there on that
  /// exist; `left`: rows from this one on, 1 apart. `ahead_bytes` > 0: has this row of the chunk after
  /// brought to the L2 cache, `column` columns before.
  template <bool Vector, int Quads, int Room>
  __device__ __forceinline__ void load(float4 (&to)[Room], const View4<const float>& view, int width,
                                       int left, int column, int ahead_bytes) {
    const int exist = left > 0 ? width : 0;
    GAUGEBLOCK_UNROLL
    for (int x = 0; x < Quads; ++x) to[x] = make_float4(0, 0, 0, 0);
    if constexpr (Vector) {
      // No branch: the loads go on while earlier rows are worked on, so no instruction may wait for them
      // here.
      GAUGEBLOCK_UNROLL
      for (int x = 0; x < Quads; ++x)
        asm volatile(
            "{\n.reg .pred p;\nsetp.ne.b32 p, %5, 0;\n"
            "@p ld.global.nc.L1::no_allocate.v4.f32 {%0,%1,%2,%3}, [%4];\n}"
            : "+f"(to[x].x), "+f"(to[x].y), "+f"(to[x].z), "+f"(to[x].w)
            : "l"(data + 32 * x), "r"(static_cast<int>(32 * x < exist)));
      if (ahead_bytes > 0 && left > chunk) prefetch(data + chunk * view.stride[1] - column, ahead_bytes);
    } else {
      const Index apart = view.stride[3];
      GAUGEBLOCK_UNROLL
      for (int x = 0; x < Quads; ++x) {
        const float* from = data + 32 * x * apart;
        if (32 * x < exist) to[x].x = __ldg(from);
        if (32 * x + 1 < exist) to[x].y = __ldg(from + apart);
        if (32 * x + 2 < exist) to[x].z = __ldg(from + 2 * apart);
        if (32 * x + 3 < exist) to[x].w = __ldg(from + 3 * apart);
      }
    }
    data += 32 * view.stride[1];
  }
};

/// Scales the row that this thread has a part of; returns its exponent. `is_bad`: split float16 does not hold
/// it. No branches, so that rows overlap.
template <int Quads, int Room>
__device__ __forceinline__ int scale_row(float4 (&row)[Room], bool& is_bad) {
  float largest[Quads];
  GAUGEBLOCK_UNROLL
  for (int x = 0; x < Quads; ++x)
    largest[x] = larger_magnitude(larger_magnitude(row[x].x, row[x].y), larger_magnitude(row[x].z, row[x].w));
  float all = largest[0];
  GAUGEBLOCK_UNROLL
  for (int x = 1; x < Quads; ++x) all = larger_magnitude(all, largest[x]);
  GAUGEBLOCK_UNROLL
  for (int offset = 1; offset < 8; offset *= 2)
    all = larger_magnitude(all, __shfl_xor_sync(0xffffffffU, all, offset));
  const int exponent = max(exponent_of(all) - top_exponent, -126);
  const float factor = power_of_two(-exponent);
  const bool is_finite = fabsf(all) <= FLT_MAX;
  is_bad = !is_finite;
  GAUGEBLOCK_UNROLL
  for (int x = 0; x < Quads; ++x) {
    const float scaled_largest = fabsf(largest[x]) * factor;
    is_bad = is_bad || (scaled_largest > 0 && scaled_largest < full_precision);
    row[x].x = is_finite ? row[x].x * factor : 0.0F;  // a bad step must not spoil others through 0 · NaN
    row[x].y = is_finite ? row[x].y * factor : 0.0F;
    row[x].z = is_finite ? row[x].z * factor : 0.0F;
    row[x].w = is_finite ? row[x].w * factor : 0.0F;
  }
  return is_finite ? exponent : 0;
}

/// Byte of an element of a row of tiles of 64 columns each.
__device__ __forceinline__ int place_in_tiles(int row, int column) {
  return column / 64 * tile_bytes + row * 128 + ((column % 64 / 8) ^ (row % 8)) * 16 + column % 8 * 2;
}

/// Splits a row into the tiles at `high` and `low` (of 64 columns each).
template <int Quads, int Room>
__device__ __forceinline__ void store_row(const float4 (&values)[Room], char* stage, int high, int low,
                                          int row, int column) {
  GAUGEBLOCK_UNROLL
  for (int x = 0; x < Quads; ++x) {
    const int offset = place_in_tiles(row, column + 32 * x);
    uint2 upper, lower;
    split(values[x].x, values[x].y, upper.x, lower.x);
    split(values[x].z, values[x].w, upper.y, lower.y);
    *reinterpret_cast<uint2*>(stage + high + offset) = upper;
    *reinterpret_cast<uint2*>(stage + low + offset) = lower;
  }
}

/// The row that this thread stored at `from_high` and `from_low`, times a factor, to `high` and `low`.
__device__ __forceinline__ void store_scaled_row(char* stage, int from_high, int from_low, int high, int low,
                                                 int row, int column, float factor) {
  GAUGEBLOCK_UNROLL
  for (int x = 0; x < 2; ++x) {
    const int offset = place_in_tiles(row, column + 32 * x);
    const uint2 of_high = *reinterpret_cast<const uint2*>(stage + from_high + offset);
    const uint2 of_low = *reinterpret_cast<const uint2*>(stage + from_low + offset);
    const float2 first = joined(of_high.x, of_low.x), second = joined(of_high.y, of_low.y);
    uint2 upper, lower;
    split(first.x * factor, first.y * factor, upper.x, lower.x);
    split(second.x * factor, second.y * factor, upper.y, lower.y);
    *reinterpret_cast<uint2*>(stage + high + offset) = upper;
    *reinterpret_cast<uint2*>(stage + low + offset) = lower;
  }
}

template <bool Vector, int NP, bool Outputs>
__device__ void load_chunks(const Block<NP, Outputs>& block, const RecurrenceViews& views, int thread) {
  using At = Place<NP, Outputs>;
  constexpr int quads = 2 * NP;  // of a row of q or k that a thread has
  const int lane = thread % 32;
  const int row = lane / 8 * 4 + thread / 32 % 4 + thread / 128 * 16, column = lane % 8 * 4;
  const bool first_of_row = lane % 8 == 0;
  const auto rows_of = [&](const View4<const float>& view, int first) {
    return Rows{view.data + view.at(block.b, block.first_step + row, block.h, first + column)};
  };
  Rows q = rows_of(views.q, 0), k = rows_of(views.k, 0), v = rows_of(views.v, block.first_column);
  const int width_k = static_cast<int>(views.K) - column;
  const int width_v = static_cast<int>(views.V) - block.first_column - column;
  const int ahead_k = first_of_row ? 4 * static_cast<int>(views.K) : 0;
  const int ahead_v = first_of_row ? 4 * min(width_v, columns) : 0;  // column is 0 there
  int left = static_cast<int>(views.T) - block.first_step - row;     // rows of this chunk on
  // The pieces of a chunk, one row of each 32: two of k, of v, of q. Some are under way at any time.
  constexpr int pieces = Outputs ? 6 : 4, under_way = Outputs ? 3 : 2;
  static_assert(pieces % under_way == 0, "a piece has the same place in every chunk");
  float4 ring[under_way][quads];
  const auto load = [&](float4(&to)[quads], int piece, int rows_left) {
    const int row_left = rows_left - 32 * (piece % 2);
    if (piece < 2)
      k.template load<Vector, quads>(to, views.k, width_k, row_left, column, ahead_k);
    else if (piece < 4)
      v.template load<Vector, 2>(to, views.v, width_v, row_left, column, ahead_v);
    else
      q.template load<Vector, quads>(to, views.q, width_k, row_left, column, ahead_k);
  };
  GAUGEBLOCK_UNROLL
  for (int piece = 0; piece < under_way; ++piece) load(ring[piece], piece, left);
  // Where v lies: without outputs it is needed for W only, and lies there.
  constexpr int v_high = Outputs ? At::v_high : At::w_high, v_low = Outputs ? At::v_low : At::w_low;
  int bad_step = no_bad_step;

  for (int c = 0; c < block.chunks; ++c) {
    char* const stage = block.memory + (c & 1) * At::stage;
    const int step = block.first_step + c * chunk + row;
    block.wait_empty(qk_empty, c);
    GAUGEBLOCK_UNROLL
    for (int piece = 0; piece < pieces; ++piece) {
      const int i = piece % 2, which = piece / 2;  // k, v, q
      float4(&values)[quads] = ring[piece % under_way];
      if (piece == 2) block.wait_empty(v_empty, c);
      bool is_bad;
      const int exponent = which == 1 ? scale_row<2>(values, is_bad) : scale_row<quads>(values, is_bad);
      if (is_bad) bad_step = min(bad_step, step + 32 * i);
      if (first_of_row) block.exponents(c, which)[row + 32 * i] = static_cast<signed char>(exponent);
      if (which == 0) store_row<quads>(values, stage, At::k_high, At::k_low, row + 32 * i, column);
      if (which == 1) store_row<2>(values, stage, v_high, v_low, row + 32 * i, column);
      if (which == 2) store_row<quads>(values, stage, At::q_high, At::q_low, row + 32 * i, column);
      const int next = piece + under_way;
      if (next < pieces)
        load(values, next, left);
      else if (c + 1 < block.chunks)
        load(values, next - pieces, left - chunk);
      if (piece == 3) block.arrive(exponents_ready, c);
    }
    fence_async_proxy();
    block.arrive(qk_full, c);
    block.wait(tables_ready, c);
    GAUGEBLOCK_UNROLL
    for (int i = 0; i < 2; ++i)
      store_scaled_row(stage, v_high, v_low, At::w_high, At::w_low, row + 32 * i, column,
                       block.write_scale()[row + 32 * i]);
    fence_async_proxy();
    block.arrive(v_full, c);
    left -= chunk;
  }
  if (bad_step != no_bad_step) block.call_bad(bad_step);
}

// ---- the state ----

/// The gates and betas of two steps of the chunk to come, held by each lane of the first warp.
struct Multipliers {
  float gate[2], beta[2];
};

template <int NP, bool Outputs>
__device__ __forceinline__ Multipliers load_multipliers(const Block<NP, Outputs>& block,
                                                        const RecurrenceViews& views, int c, int lane) {
  Multipliers result{{1, 1}, {0, 0}};
  if (c >= block.chunks) return result;
  GAUGEBLOCK_UNROLL
  for (int x = 0; x < 2; ++x) {
    const int t = block.first_step + c * chunk + lane + 32 * x;
    if (t < views.T) {
      result.gate[x] = __ldg(views.gate.data + views.gate.at(block.b, t, block.h));
      result.beta[x] = __ldg(views.beta.data + views.beta.at(block.b, t, block.h));
    }
  }
  return result;
}

/// The tables of chunk c, by one warp.
template <int NP, bool Outputs>
__device__ __forceinline__ void make_tables(const Block<NP, Outputs>& block, int c, Multipliers of,
                                            int lane) {
  Tables& tables = block.tables(c);
  const int first = block.first_step + c * chunk;
  block.wait(exponents_ready, c);
  float prefix[2], suffix[2], beta[2], write[2];
  GAUGEBLOCK_UNROLL
  for (int x = 0; x < 2; ++x) {
    const int s = lane + 32 * x;
    const bool is_finite = fabsf(of.gate[x]) <= FLT_MAX;
    if (!is_finite) of.gate[x] = 0;
    beta[x] = scaled(of.beta[x], block.exponents(c, 0)[s] + block.exponents(c, 1)[s]);
    const bool fits = fabsf(beta[x]) <= large_factor && fabsf(of.beta[x]) <= FLT_MAX;
    if (!fits) beta[x] = 0;
    if (!is_finite || !fits) block.call_bad(first + s);
    prefix[x] = of.gate[x];
    suffix[x] = __shfl_down_sync(0xffffffffU, of.gate[x], 1, 16);
    if (lane % 16 == 15) suffix[x] = 1;
    GAUGEBLOCK_UNROLL
    for (int offset = 1; offset < 16; offset *= 2) {
      const float left = __shfl_up_sync(0xffffffffU, prefix[x], offset, 16);
      if (lane % 16 >= offset) prefix[x] *= left;
      const float right = __shfl_down_sync(0xffffffffU, suffix[x], offset, 16);
      if (lane % 16 + offset < 16) suffix[x] *= right;
    }
  }
  float product[4];  // of a block
  GAUGEBLOCK_UNROLL
  for (int w = 0; w < 4; ++w) product[w] = __shfl_sync(0xffffffffU, prefix[w / 2], w % 2 * 16 + 15);
  const float later = lane < 16 ? product[1] : 1.0F;
  write[0] = beta[0] * suffix[0] * later * product[2] * product[3];
  write[1] = beta[1] * suffix[1] * (lane < 16 ? product[3] : 1.0F);
  const float decay = product[0] * product[1] * product[2] * product[3];
  float largest = larger_magnitude(write[0], write[1]);
  GAUGEBLOCK_UNROLL
  for (int offset = 16; offset > 0; offset /= 2)
    largest = larger_magnitude(largest, __shfl_xor_sync(0xffffffffU, largest, offset));
  // The state after this chunk is lost, and with it the steps behind.
  const bool fits = fabsf(largest) <= large_factor && fabsf(decay) <= FLT_MAX;
  if (!fits && lane == 0) block.call_bad(first + chunk);
  const int exponent = fits ? clamped(exponent_of(largest) + 1) : 0;  // |W| < 2^15
  GAUGEBLOCK_UNROLL
  for (int x = 0; x < 2; ++x) {
    const int s = lane + 32 * x;
    tables.prefix[s] = prefix[x];
    tables.gate[s] = of.gate[x];
    tables.beta[s] = beta[x];
    tables.suffix_beta[s] = beta[x] * suffix[x];
    block.write_scale()[s] = fits ? write[x] * power_of_two(-exponent) : 0.0F;
  }
  if (lane == 0) {
    tables.before[0] = 1;
    tables.before[1] = product[0];
    tables.before[2] = product[0] * product[1];
    tables.before[3] = product[0] * product[1] * product[2];
    tables.between[1][0] = tables.between[2][1] = tables.between[3][2] = 1;
    tables.between[2][0] = product[1];
    tables.between[3][1] = product[2];
    tables.between[3][0] = product[1] * product[2];
    tables.decay = fits ? decay : 0.0F;
    tables.write_unit = power_of_two(exponent);
  }
  block.arrive(tables_ready, c);
}

__device__ __forceinline__ void store_matrices(std::uint32_t address, const std::uint32_t (&values)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(values[0]),
               "r"(values[1]), "r"(values[2]), "r"(values[3])
               : "memory");
}

/// The split copy of the state for the outputs of chunk c, scaled by a power of two.
template <int NP, bool Outputs>
__device__ __forceinline__ void copy_state(const Block<NP, Outputs>& block, const float (&state)[NP][32],
                                           int c, int warp, int lane) {
  using At = Place<NP, Outputs>;
  float largest = 0;
  GAUGEBLOCK_UNROLL
  for (int p = 0; p < NP; ++p) GAUGEBLOCK_UNROLL
  for (int i = 0; i < 32; ++i) largest = larger_magnitude(largest, state[p][i]);
  GAUGEBLOCK_UNROLL
  for (int offset = 16; offset > 0; offset /= 2)
    largest = larger_magnitude(largest, __shfl_xor_sync(0xffffffffU, largest, offset));
  float* const largest_of = block.state_largest() + c % 2 * 4;  // a slow warp may still read the other four
  if (lane == 0) largest_of[warp] = largest;
  asm volatile("bar.sync 1, 128;" ::: "memory");  // the four warps' maxima are there
  GAUGEBLOCK_UNROLL
  for (int w = 0; w < 4; ++w) largest = larger_magnitude(largest, largest_of[w]);
  const bool fits = fabsf(largest) <= large_factor;
  const int exponent = fits ? max(exponent_of(largest) - top_exponent, -126) : 0;
  const float factor = fits ? power_of_two(-exponent) : 0.0F;
  if (warp == 0 && lane == 0 && !fits) block.call_bad(block.first_step + c * chunk);
  if (c >= 1) block.wait(state_free, c - 1);  // the outputs of the chunk before have used the copy
  if (warp == 0 && lane == 0) block.state_exponent()[c & 1] = exponent;
  GAUGEBLOCK_UNROLL
  for (int p = 0; p < NP; ++p) GAUGEBLOCK_UNROLL
  for (int j = 0; j < 8; j += 2) {
    std::uint32_t high[4], low[4];
    GAUGEBLOCK_UNROLL
    for (int x = 0; x < 4; ++x) {
      const int at = (j + x / 2) * 4 + x % 2 * 2;
      split(state[p][at] * factor, state[p][at + 1] * factor, high[x], low[x]);
    }
    const int row = p * 64 + warp * 16 + lane % 16;
    const std::uint32_t offset = row * 128 + ((j + lane / 16) ^ (row & 7)) * 16;
    store_matrices(block.base + At::s_high + offset, high);
    store_matrices(block.base + At::s_low + offset, low);
  }
  fence_async_proxy();
  block.arrive(state_ready, c);
}

template <int NP, bool Outputs>
__device__ void follow_state(const Block<NP, Outputs>& block, const RecurrenceViews& views, Cut cut,
                             int segment, float* segment_states, float* segment_decays, int thread) {
  using At = Place<NP, Outputs>;
  const int warp = thread / 32, lane = thread % 32;
  float state[NP][32];
  const int slot = (block.bh * cut.column_blocks + block.first_column / columns) * cut.segments;
  constexpr Index slot_floats = NP * 32 * 128;

  // Element i of a thread's part p of the state.
  const auto row_of = [&](int p, int i) { return p * 64 + warp * 16 + lane / 4 + i % 4 / 2 * 8; };
  const auto column_of = [&](int i) { return block.first_column + i / 4 * 8 + lane % 4 * 2 + i % 2; };
  GAUGEBLOCK_UNROLL
  for (int p = 0; p < NP; ++p) GAUGEBLOCK_UNROLL
  for (int i = 0; i < 32; ++i) state[p][i] = 0;
  if (Outputs && views.initial_state.data != nullptr) {
    GAUGEBLOCK_UNROLL
    for (int p = 0; p < NP; ++p) GAUGEBLOCK_UNROLL
    for (int i = 0; i < 32; ++i) {
      const int row = static_cast<int>(opaque(static_cast<std::uint32_t>(row_of(p, i))));
      if (row < views.K && column_of(i) < views.V)
        state[p][i] = views.initial_state.data[views.initial_state.at(block.b, block.h, row, column_of(i))];
    }
  }
  if (Outputs)
    for (int before = 0; before < segment; ++before) {
      const float decay = segment_decays[slot + before];
      const float* from = segment_states + (slot + before) * slot_floats + thread;
      GAUGEBLOCK_UNROLL
      for (int p = 0; p < NP; ++p) GAUGEBLOCK_UNROLL
      for (int i = 0; i < 32; ++i) state[p][i] = fmaf(decay, state[p][i], __ldcg(from + (p * 32 + i) * 128));
    }
  float whole_decay = 1;
  Multipliers next{};
  if (warp == 0) {
    next = load_multipliers(block, views, 0, lane);
    make_tables(block, 0, next, lane);
    next = load_multipliers(block, views, 1, lane);
  }
  if (Outputs) copy_state(block, state, 0, warp, lane);

  for (int c = 0; c < block.chunks; ++c) {
    block.wait(tables_ready, c);
    block.wait(qk_full, c);
    block.wait(v_full, c);
    const std::uint64_t stage = descriptor(opaque(block.base + (c & 1) * At::stage));
    const float decay = block.tables(c).decay, unit = block.tables(c).write_unit;
    whole_decay *= decay;
    GAUGEBLOCK_UNROLL
    for (int p = 0; p < NP; ++p) {
      // The writes are summed by themselves: the tensor core truncates, which a long-lived state would add
      // up.
      float writes[32];
      matrix_clear(writes);
      matrix_begin(writes);
      GAUGEBLOCK_UNROLL
      for (int part = 0; part < 3; ++part) GAUGEBLOCK_UNROLL
      for (int x = 0; x < 4; ++x)
        matrix_multiply<1, 1>(
            writes, advanced(stage, (part == 0 ? At::k_low : At::k_high) + p * tile_bytes + x * 2048),
            advanced(stage, (part == 1 ? At::w_low : At::w_high) + x * 2048), 1);
      wgmma_commit();
      matrix_wait<0>(writes);
      GAUGEBLOCK_UNROLL
      for (int i = 0; i < 32; ++i) state[p][i] = fmaf(writes[i], unit, state[p][i] * decay);
    }
    block.arrive(qk_empty, c);
    block.arrive(v_empty, c);
    if (c + 1 < block.chunks) {
      if (Outputs)
        copy_state(block, state, c + 1, warp, lane);
      else
        asm volatile("bar.sync 1, 128;" ::: "memory");  // all have read this chunk's decay
      if (warp == 0) {
        make_tables(block, c + 1, next, lane);
        next = load_multipliers(block, views, c + 2, lane);
      }
    }
  }
  if (!Outputs) {
    float* to = segment_states + (slot + segment) * slot_floats + thread;
    GAUGEBLOCK_UNROLL
    for (int p = 0; p < NP; ++p) GAUGEBLOCK_UNROLL
    for (int i = 0; i < 32; ++i) to[(p * 32 + i) * 128] = state[p][i];
    if (thread == 0) segment_decays[slot + segment] = whole_decay;
  } else if (segment == cut.segments - 1) {
    GAUGEBLOCK_UNROLL
    for (int p = 0; p < NP; ++p) GAUGEBLOCK_UNROLL
    for (int i = 0; i < 32; ++i) {
      const int row = static_cast<int>(opaque(static_cast<std::uint32_t>(row_of(p, i))));
      if (row < views.K && column_of(i) < views.V)
        views.final_state.data[views.final_state.at(block.b, block.h, row, column_of(i))] = state[p][i];
    }
  }
}

// ---- outputs ----

template <int NP>
__device__ void compute_outputs(const Block<NP, true>& block, const RecurrenceViews& views, bool vector_y,
                                int thread) {
  using At = Place<NP, true>;
  const int warp = thread / 32, lane = thread % 32, r = lane / 4, pair = lane % 4;
  const int rows[2] = {warp * 16 + r, warp * 16 + r + 8};
  float carried[32], score[32];
  GAUGEBLOCK_UNROLL
  for (int i = 0; i < 32; ++i) carried[i] = score[i] = 0;

  for (int c = 0; c < block.chunks; ++c) {
    const int parity = c & 1;
    const std::uint64_t stage = descriptor(opaque(block.base + parity * At::stage));
    const std::uint64_t state = descriptor(opaque(block.base));
    const Tables& tables = block.tables(parity);
    block.wait(qk_full, c);
    matrix_begin(score);
    GAUGEBLOCK_UNROLL
    for (int part = 0; part < 3; ++part) GAUGEBLOCK_UNROLL
    for (int x = 0; x < NP * 4; ++x)
      matrix_multiply<0, 0>(
          score, advanced(stage, (part == 0 ? At::q_low : At::q_high) + x / 4 * tile_bytes + x % 4 * 32),
          advanced(stage, (part == 1 ? At::k_low : At::k_high) + x / 4 * tile_bytes + x % 4 * 32),
          (part | x) != 0);
    wgmma_commit();
    block.wait(state_ready, c);
    matrix_begin(carried);
    GAUGEBLOCK_UNROLL
    for (int part = 0; part < 3; ++part) GAUGEBLOCK_UNROLL
    for (int x = 0; x < NP * 4; ++x)
      matrix_multiply<0, 1>(
          carried, advanced(stage, (part == 0 ? At::q_low : At::q_high) + x / 4 * tile_bytes + x % 4 * 32),
          advanced(state, (part == 1 ? At::s_low : At::s_high) + x * 2048), (part | x) != 0);
    wgmma_commit();

    // Meanwhile the decays inside the warp's own block of 16 steps: Π gate_{s+1} … gate_t, 0 for s > t.
    block.wait(tables_ready, c);
    float own[2][4];
    {
      float decay[2] = {0, 0};
      GAUGEBLOCK_UNROLL
      for (int s = 15; s >= 0; --s) {
        const float gate = s < 15 ? tables.gate[warp * 16 + s + 1] : 0.0F;
        decay[0] = s > r ? 0.0F : (s == r ? 1.0F : decay[0] * gate);
        decay[1] = s > r + 8 ? 0.0F : (s == r + 8 ? 1.0F : decay[1] * gate);
        if (s % 8 / 2 == pair) {
          own[0][s / 8 * 2 + s % 2] = decay[0];
          own[1][s / 8 * 2 + s % 2] = decay[1];
        }
      }
    }
    const int state_exponent = block.state_exponent()[parity];
    const float from_start[2] = {tables.prefix[rows[0]], tables.prefix[rows[1]]};
    const float before = tables.before[warp];
    const int exponent_q[2] = {block.exponents(parity, 2)[rows[0]], block.exponents(parity, 2)[rows[1]]};
    const float between[3] = {tables.between[warp][0], tables.between[warp][1], tables.between[warp][2]};

    // Weights are made before the scores are there: no branch may stand between two waits for the matrices.
    float weight[32];
    GAUGEBLOCK_UNROLL
    for (int j = 0; j < 8; ++j) {
      const int of = j / 2;  // the block of steps s
      const bool earlier = of < warp;
      const float2 far = *reinterpret_cast<const float2*>(&tables.suffix_beta[j * 8 + pair * 2]);
      const float2 near = *reinterpret_cast<const float2*>(&tables.beta[j * 8 + pair * 2]);
      GAUGEBLOCK_UNROLL
      for (int x = 0; x < 2; ++x) {
        const float decay = of < 3 ? from_start[x] * between[of < 3 ? of : 0] : 0.0F;
        const bool is_own = of == warp;
        // A select, since an overflown product times 0 would be NaN. `own` is 0 for s > t.
        weight[4 * j + 2 * x] = earlier ? decay * far.x : (is_own ? own[x][j % 2 * 2] * near.x : 0.0F);
        weight[4 * j + 2 * x + 1] =
            earlier ? decay * far.y : (is_own ? own[x][j % 2 * 2 + 1] * near.y : 0.0F);
      }
    }
    GAUGEBLOCK_UNROLL
    for (int i = 0; i < 32; ++i) asm volatile("" ::"f"(weight[i]));

    matrix_wait<1>(score);
    float largest[2] = {0, 0};
    GAUGEBLOCK_UNROLL
    for (int i = 0; i < 32; ++i) {
      score[i] *= weight[i];
      largest[i % 4 / 2] = larger_magnitude(largest[i % 4 / 2], score[i]);
    }
    int exponent_p[2];
    float factor_p[2], factor_carried[2];
    GAUGEBLOCK_UNROLL
    for (int x = 0; x < 2; ++x) {
      largest[x] = larger_magnitude(largest[x], __shfl_xor_sync(0xffffffffU, largest[x], 1));
      largest[x] = larger_magnitude(largest[x], __shfl_xor_sync(0xffffffffU, largest[x], 2));
      const float decay = from_start[x] * before;
      // At most 2^61 is left to multiply the carried part with, which is then far below float32's end.
      exponent_p[x] =
          clamped(max(exponent_of(largest[x]) - top_exponent, exponent_of(decay) + state_exponent - 60));
      factor_p[x] = power_of_two(-exponent_p[x]);
      factor_carried[x] = scaled(decay, state_exponent - exponent_p[x]);
    }
    std::uint32_t high[16], low[16];
    GAUGEBLOCK_UNROLL
    for (int j = 0; j < 8; ++j) GAUGEBLOCK_UNROLL
    for (int x = 0; x < 2; ++x)
      split(score[4 * j + 2 * x] * factor_p[x], score[4 * j + 2 * x + 1] * factor_p[x], high[2 * j + x],
            low[2 * j + x]);

    matrix_wait<0>(carried);
    block.arrive(state_free, c);
    block.arrive(qk_empty, c);
    GAUGEBLOCK_UNROLL
    for (int i = 0; i < 32; ++i) carried[i] *= factor_carried[i % 4 / 2];
    block.wait(v_full, c);
    matrix_begin(carried);
    GAUGEBLOCK_UNROLL
    for (int part = 0; part < 3; ++part) GAUGEBLOCK_UNROLL
    for (int x = 0; x < 4; ++x)
      matrix_multiply_registers<1>(carried, (part == 0 ? low : high) + 4 * x,
                                   advanced(stage, (part == 1 ? At::v_low : At::v_high) + x * 2048));
    wgmma_commit();
    matrix_wait<0>(carried);
    block.arrive(v_empty, c);

    GAUGEBLOCK_UNROLL
    for (int x = 0; x < 2; ++x) {
      const int t = block.first_step + c * chunk + rows[x];
      if (t >= views.T) continue;
      if (!(fabsf(largest[x]) < 0x1p120F && fabsf(factor_carried[x]) <= 0x1p62F)) block.call_bad(t);
      const int exponent = exponent_q[x] + exponent_p[x];
      const float factor = power_of_two(clamped(exponent)),
                  rest = power_of_two(clamped(exponent - clamped(exponent)));
      float* to = views.y.data + views.y.at(block.b, t, block.h, 0);
      GAUGEBLOCK_UNROLL
      for (int j = 0; j < 8; ++j) {
        const int at = block.first_column + j * 8 + pair * 2;
        const float y0 = carried[4 * j + 2 * x] * factor * rest,
                    y1 = carried[4 * j + 2 * x + 1] * factor * rest;
        if (vector_y) {
          if (at < views.V) __stcs(reinterpret_cast<float2*>(to + at), make_float2(y0, y1));
        } else {
          if (at < views.V) to[at * views.y.stride[3]] = y0;
          if (at + 1 < views.V) to[(at + 1) * views.y.stride[3]] = y1;
        }
      }
    }
  }
}

// ---- kernels ----

template <int NP, bool Outputs>
__device__ Block<NP, Outputs> make_block(const RecurrenceViews& views, Cut cut, int segments, char* memory,
                                         int& segment) {
  Block<NP, Outputs> block;
  block.memory = memory;
  block.base = shared_address(memory);
  const int index = static_cast<int>(blockIdx.x);
  block.first_column = index % cut.column_blocks * columns;
  segment = index / cut.column_blocks % segments;
  block.bh = index / cut.column_blocks / segments;
  block.b = block.bh / static_cast<int>(views.H);
  block.h = block.bh % static_cast<int>(views.H);
  block.first_step = segment * cut.chunks_of_segment * chunk;
  const int all = static_cast<int>((views.T + chunk - 1) / chunk);
  block.chunks = min(cut.chunks_of_segment, all - segment * cut.chunks_of_segment);
  if (threadIdx.x == 0) {
    const int users = Outputs ? 256 : 128;  // threads that use a stage: those of the state and of the outputs
    for (int stage = 0; stage < 2; ++stage) {
      barrier_init(block.barrier(qk_full, stage), 128 * load_groups);
      barrier_init(block.barrier(v_full, stage), 128 * load_groups);
      barrier_init(block.barrier(qk_empty, stage), users);
      barrier_init(block.barrier(v_empty, stage), users);
      barrier_init(block.barrier(state_ready, stage), 128);
      barrier_init(block.barrier(state_free, stage), 128);
      barrier_init(block.barrier(tables_ready, stage), 32);
      barrier_init(block.barrier(exponents_ready, stage), 128 * load_groups);
    }
    *block.bad_step() = no_bad_step;
    fence_barrier_init();
  }
  __syncthreads();  // the barriers are there
  return block;
}

/// What each segment but the last writes by itself: its state from a state of zero, and its decay.
template <int NP>
__global__ void __launch_bounds__(128 * (1 + load_groups), 1)
    segment_kernel(RecurrenceViews views, Cut cut, Vectors vectors, float* segment_states,
                   float* segment_decays) {
  extern __shared__ __align__(1024) char shared_memory[];
  int segment;
  const Block<NP, false> block = make_block<NP, false>(views, cut, cut.segments - 1, shared_memory, segment);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < 128)
    follow_state(block, views, cut, segment, segment_states, segment_decays, thread);
  else if (vectors.inputs)
    load_chunks<true>(block, views, thread - 128);
  else
    load_chunks<false>(block, views, thread - 128);
}

template <int NP>
__global__ void __launch_bounds__(128 * (2 + load_groups), 1)
    outputs_kernel(RecurrenceViews views, Cut cut, Vectors vectors, float* segment_states,
                   float* segment_decays, int* bad_steps) {
  extern __shared__ __align__(1024) char shared_memory[];
  int segment;
  const Block<NP, true> block = make_block<NP, true>(views, cut, cut.segments, shared_memory, segment);
  const int group = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / 128, 0);
  const int thread = static_cast<int>(threadIdx.x) - group * 128;
  if (group == 0) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 168;");
    compute_outputs(block, views, vectors.y, thread);
  } else if (group == 1) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 136;");
    follow_state(block, views, cut, segment, segment_states, segment_decays, thread);
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 104;");
    if (vectors.inputs)
      load_chunks<true>(block, views, thread + (group - 2) * 128);
    else
      load_chunks<false>(block, views, thread + (group - 2) * 128);
  }
  __syncthreads();  // no bad step comes any more
  if (threadIdx.x == 0) bad_steps[blockIdx.x] = *block.bad_step();
}

constexpr int repair_threads = 1024;
constexpr int repair_columns = repair_threads / 32;

/// Outputs from the first bad step of a (b,h) on, and then its final state: the definition in float32, a warp
/// per column of the state.
__global__ void __launch_bounds__(repair_threads)
    repair_kernel(RecurrenceViews views, int slots, const int* bad_steps) {
  const int blocks = static_cast<int>((views.V + repair_columns - 1) / repair_columns);
  const Index bh = blockIdx.x / blocks, b = bh / views.H, h = bh % views.H;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  int first_bad = views.T == 0 ? 0 : no_bad_step;
  if (views.T > 0)
    for (int i = lane; i < slots; i += 32) first_bad = min(first_bad, bad_steps[bh * slots + i]);
  first_bad = __reduce_min_sync(0xffffffffU, first_bad);
  const Index j = Index{blockIdx.x} % blocks * repair_columns + warp;
  if (first_bad == no_bad_step || j >= views.V) return;
  float state[most_columns / 32];
  GAUGEBLOCK_UNROLL
  for (int x = 0; x < most_columns / 32; ++x) {
    const Index i = lane + 32 * x;
    state[x] = 0;
    if (i < views.K && views.initial_state.data != nullptr)
      state[x] = views.initial_state.data[views.initial_state.at(b, h, i, j)];
  }
  for (Index t = 0; t < views.T; ++t) {
    const float gate = views.gate.data[views.gate.at(b, t, h)],
                beta = views.beta.data[views.beta.at(b, t, h)], v = views.v.data[views.v.at(b, t, h, j)];
    float sum = 0;
    GAUGEBLOCK_UNROLL
    for (int x = 0; x < most_columns / 32; ++x) {
      const Index i = lane + 32 * x;
      if (i >= views.K) continue;
      state[x] = fmaf(gate, state[x], (beta * views.k.data[views.k.at(b, t, h, i)]) * v);
      sum = fmaf(views.q.data[views.q.at(b, t, h, i)], state[x], sum);
    }
    if (t < first_bad) continue;
    GAUGEBLOCK_UNROLL
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, offset);
    if (lane == 0) views.y.data[views.y.at(b, t, h, j)] = sum;
  }
  GAUGEBLOCK_UNROLL
  for (int x = 0; x < most_columns / 32; ++x) {
    const Index i = lane + 32 * x;
    if (i < views.K) views.final_state.data[views.final_state.at(b, h, i, j)] = state[x];
  }
}

// ---- launches ----

constexpr Index multiprocessors = 132;  // of an H100 or H200; fewer only make the last wave longer

Cut cut_of(const RecurrenceArguments& arguments) {
  Cut cut{};
  cut.column_blocks = static_cast<int>(ceil_div(arguments.value_size(), columns));
  const Index blocks = arguments.batches() * arguments.heads() * cut.column_blocks;
  const Index chunks = ceil_div(arguments.steps(), chunk);
  // A segment costs its writes a second time, so one is at least two chunks.
  Index segments = multiprocessors / blocks;
  segments = segments > chunks / 2 ? chunks / 2 : segments;
  segments = segments < 1 ? 1 : segments;
  cut.chunks_of_segment = static_cast<int>(ceil_div(chunks, segments));
  cut.segments = cut.chunks_of_segment > 0 ? static_cast<int>(ceil_div(chunks, cut.chunks_of_segment)) : 1;
  return cut;
}

/// Workspace, in floats: states and decays of segments, then the first bad step of each block.
struct Workspace {
  Index states, decays, bad_steps, floats;
};

Workspace workspace_of(const RecurrenceArguments& arguments, const Cut& cut) {
  const Index slots = arguments.batches() * arguments.heads() * cut.column_blocks * cut.segments;
  const Index parts = arguments.key_size() <= 64 ? 1 : 2;
  Workspace workspace{};
  workspace.states = cut.segments > 1 ? slots * parts * 32 * 128 : 0;
  workspace.decays = cut.segments > 1 ? slots : 0;
  workspace.bad_steps = slots;
  workspace.floats = workspace.states + workspace.decays + workspace.bad_steps;
  return workspace;
}

template <int NP>
void launch_for(const RecurrenceArguments& arguments, float* memory, LaunchContext& context) {
  const RecurrenceViews views = views_of(arguments);
  const Cut cut = cut_of(arguments);
  const Workspace workspace = workspace_of(arguments, cut);
  float* const decays = memory + workspace.states;
  int* const bad_steps = reinterpret_cast<int*>(decays + workspace.decays);
  const Vectors vectors{rows_are_aligned(arguments.q, 4) && rows_are_aligned(arguments.k, 4) &&
                            rows_are_aligned(arguments.v, 4),
                        rows_are_aligned(arguments.y, 2)};
  const Index blocks = views.B * views.H * cut.column_blocks;
  if (views.T > 0) {
    if (cut.segments > 1)
      launch(GAUGEBLOCK_KERNEL(segment_kernel<NP>), grid_of(blocks * (cut.segments - 1)),
             dim3(128 * (1 + load_groups)), Place<NP, false>::bytes, context, views, cut, vectors, memory,
             decays);
    launch(GAUGEBLOCK_KERNEL(outputs_kernel<NP>), grid_of(blocks * cut.segments),
           dim3(128 * (2 + load_groups)), Place<NP, true>::bytes, context, views, cut, vectors, memory,
           decays, bad_steps);
  }
  launch(GAUGEBLOCK_KERNEL(repair_kernel), grid_of(views.B * views.H * ceil_div(views.V, repair_columns)),
         dim3(repair_threads), 0, context, views, cut.column_blocks * cut.segments, bad_steps);
}

std::optional<std::string> declines(const RecurrenceArguments& arguments) {
  if (arguments.key_size() > most_columns || arguments.value_size() > most_columns)
    return "K and V are " + std::to_string(arguments.key_size()) + " and " +
           std::to_string(arguments.value_size()) + ", at most " + std::to_string(most_columns) +
           " are taken";
  if (arguments.steps() > INT_MAX - chunk)
    return "T is " + std::to_string(arguments.steps()) + ", at most " + std::to_string(INT_MAX - chunk) +
           " steps are counted";
  const Cut cut = cut_of(arguments);
  if (auto reason = too_much_workspace(workspace_of(arguments, cut).floats)) return reason;
  return too_many_blocks(arguments.batches() * arguments.heads() * cut.column_blocks * cut.segments * 2);
}

void run(const RecurrenceArguments& arguments, LaunchContext& context) {
  const Index floats = workspace_of(arguments, cut_of(arguments)).floats;
  const DeviceBuffer workspace(*context.device, floats > 0 ? floats : 1, "workspace");
  if (arguments.key_size() <= 64)
    launch_for<1>(arguments, workspace.data(), context);
  else
    launch_for<2>(arguments, workspace.data(), context);
}

}  // namespace

RecurrenceKernel chunked_split_half() {
  return {"chunked_split_half",
          "chunks of 64 steps on the tensor cores in split float16, the state in registers",
          "chunked",
          chunk,
          declines,
          run,
          true,
          true,
          "sm_90"};
}

}  // namespace GAUGEBLOCK_BACKEND
}  // namespace gaugeblock::gpu
