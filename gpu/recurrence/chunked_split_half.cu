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
// digits; an infinity or NaN; products near the end of float32's range; a carried state 2^60 beyond the
// chunk's own weights) a step is called bad. Then the block's columns are computed once more, step by step in
// float32, and replace the outputs from the first bad step on: by the block itself at its end, or, where time
// is cut into segments, by `repair_kernel`, which does nothing for columns without a bad step. So y_t depends
// on steps up to t only, bit for bit.
//
// A block: one (b,h), 64 columns of v, one segment. Warpgroups:
//     0      outputs:  Y = A (Q S) + P V,  P = mask(Q Kᵀ)
//     1      state:  S ← G S + Kᵀ W  in float32, and its split copy for warpgroup 0; decay tables
//     2, 3   load, scale and split q, k, v, and W = (what gates leave of beta) v, two chunks in flight
// The launch before has no warpgroup of outputs, and cuts segments into pieces, so that all multiprocessors
// are done at about the same time.
//
// Takes any T, K and V up to 128 (padded to 64 or 128 by zeros), any strides.
//
// What bounds it (B=4, T=4096, H=16, K=V=128 on an H200: 270 µs, 4.2 µs a chunk): shared memory and L1, busy
// three quarters of the time, half of it by the 84 matrix products of 64×64×16 a chunk, 32 cycles each, whose
// operands both lie there (tensor cores: a third). By clock stamps, warpgroups 2 and 3 never wait for the
// others, which wait for them a fifth of the time. Samples of the program counter: a third of their time goes
// to the end of a chunk (the fence, W, the next loads, which wait for a free place in the queue of L1). What
// helped: prefetching lines by plain instructions (bulk ones take a loop over lanes), the tables by four
// warps instead of one, two rows scaled at once, W made from registers, the next chunk's scores begun ahead,
// the state's copy given free before the weights are made, and one address for a thread's whole part of a
// state (final states written element by element took 9 to 16 µs).
//
// What did not help, in µs against 270 to 277 in the same run: a third loading warpgroup with a tensor each
// (56 registers a thread, which spill: 389), one arrival a warp instead of a thread, one row a thread by
// stmatrix, with a third of the shuffles and half the stores (the same), the largest of v found together with
// those of k (277), loads behind the shuffles, or W in front of the loads (0 to 12 more). Nor less traffic in
// shared memory: V of 128 columns in a block and two segments, q as fragments in registers and decays on
// fragments of k instead of W (285; three quarters of the instructions, but the state alone takes half of the
// registers, so that 16 warps have 0.43 instructions a cycle and scheduler between them); decays on fragments
// of k in blocks of 64 columns (292: the state's warpgroup, which had time to spare, then has too much to
// do); tables by one warp without barriers (285).
//
// Nor, by enough, to load each row of q and k once for both column blocks, a cluster of two: with ordinary
// stores into both 323; with a bulk copy of a warp's eight split rows, one warpgroup for q and k, and one for
// v and the tables, 249 to 270 by the GPU, and T = 65 536 as long as without. (There an arrival at the other
// block's barrier that releases at the cluster's scope takes a tenth of the outputs' time, a fence as far as
// the L2 cache.) Without any load of q, k and v that still takes 246 to 260, so memory does not bound it: the
// warpgroup of outputs never waits, and has 860 instructions a chunk, one in nine cycles. A second one does
// not pay there either (306), because it takes registers from those who load.
//
// Scales that need not be found would help: fixed ones for q, k, v 251, for the state and P as well 238 to 249
// (B=2, T=2048, K=V=64: 43 → 39). To take those of the last rows and have the lanes vote on whether they hold
// gives 1 to 7 % by the GPU, and 2 % more time at K = 64; to store first and vote later, less. Rows copied by
// cp.async into the bytes of their own highs and lows, with the state in registers as an operand of Q S: 392.
// Fences by the readers instead of the writers: the same.
//
// Parts alone, the others only answering, in the copy whose scales are all fixed (K=V=128, µs a chunk, of 3.8;
// 4.3 as it is here): loading 2.2, outputs 2.0, the state 1.2; loading and outputs together 3.4, which neither
// stages given free early (3.3) nor any single thing explains: 2.7 without most of loading's stores to shared
// memory, 2.9 with a third of the outputs' products, 3.0 without y's stores. All of them pass through shared
// memory and L1.
//
// In replays that last, times rise to 290 to 310, and nvidia-smi shows the power limit and 1770 to 1785 MHz
// instead of 1980.
//
// With few (b,h) what precedes the first chunk costs most (B=2, T=2048, H=16, K=V=64: 43 µs): 3.6 µs until
// the first rows are there, 9 for the states of segments, 6 more until the first output can be worked on, 22
// for eight chunks, of which the warpgroup of outputs is busy all the time. Neither four loading warpgroups
// (43.4) nor two of outputs, which take turns (42.7), change much: by count, the instructions of a chunk fill
// the schedulers for 1.46 of its 2.75 µs. One launch of clusters, whose blocks hand on their states and add
// what came before at the end, takes 42 where all clusters fit at once, and they do not: 30 clusters of four
// do, 31 take 80.
#include <cfloat>
#include <climits>
#include <cstdint>

#include "gaugeblock/gpu/recurrence/hopper_matrix.h"
#include "gaugeblock/gpu/recurrence/kernel_views.h"
#include "gaugeblock/gpu/runtime/dependent_launch.h"
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

/// How a launch is cut up. Segments but the last are cut into pieces once more for the launch before.
struct Cut {
  int column_blocks, segments, chunks_of_segment, pieces, chunks_of_piece;
};

/// Pieces of a column block, before the last segment.
__host__ __device__ inline int pieces_of(Cut cut) {
  return (cut.segments - 1) * cut.pieces;
}

/// Whether four neighbours in q, k and v are one load, and two in y or in the states given and left one access.
struct Vectors {
  bool inputs, y, states;
};

/// Decay tables of a chunk. A block is 16 steps.
struct Tables {
  float prefix[chunk];  // Π gate from the start of the block to here
  float gate[chunk];
  float beta[chunk];         // beta_s · 2^(exponents of the rows k_s and v_s)
  float suffix_beta[chunk];  // the same times Π gate from here to the end of the block
  float products[4];         // Π gate of each block
  float largest[4];          // |write| of each block
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
  static constexpr int zeros = barriers + 16 * 8;  // as many as a block has steps
  static constexpr int bytes = zeros + 16 * 4;
};

/// Barriers, two each: of stage 0 and 1, or of even and odd chunks.
enum Barrier { qk_full, v_full, qk_empty, v_empty, state_ready, state_free, tables_ready, exponents_ready };

template <int NP, bool Outputs>
struct Block {
  using At = Place<NP, Outputs>;
  char* memory;
  std::uint32_t base;
  int bh, b, h, first_column, unit, first_step, chunks;  // unit: a segment, or a piece

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
  __device__ float* zeros() const { return reinterpret_cast<float*>(memory + At::zeros); }
  __device__ int* bad_step() const { return reinterpret_cast<int*>(memory + At::bad_step); }
  __device__ void call_bad(int step) const { atomicMin(bad_step(), step); }
};

// ---- loading ----

/// The rows of one tensor that a thread of the loading warpgroups brings: two of a chunk, 32 apart, of which
/// it has an eighth. Eight threads have a row; rows four apart meet no bank twice.
template <int Quads>
struct Rows {
  float4 values[2][Quads];

  __device__ __forceinline__ void clear(int i) {
    GAUGEBLOCK_UNROLL
    for (int x = 0; x < Quads; ++x) values[i][x] = make_float4(0, 0, 0, 0);
  }

  /// Columns 0 … 3, 32 … 35, … from `next` on, the thread's place in the first row, which goes on by a chunk.
  /// What does not exist stays as it is. `width`: columns from there on that exist; `left`: rows from the
  /// first on, 1 apart. With `ahead`, has the line of 128 bytes that lies 7 · `column` further in these rows
  /// of the chunk after brought to the L2 cache.
  template <bool Vector>
  __device__ __forceinline__ void load(const float*& next, const View4<const float>& view, int width,
                                       int left, int column, bool ahead) {
    // Hidden, or the compiler keeps a register for each address that it can make from the strides.
    const Index half_chunk = opaque(static_cast<long long>(32 * view.stride[1]));
    GAUGEBLOCK_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int exist = left > 32 * i ? width : 0;
      if constexpr (Vector) {
        // No branch: the loads go on while other rows are worked on, so no instruction may wait for them
        // here.
        GAUGEBLOCK_UNROLL
        for (int x = 0; x < Quads; ++x)
          asm volatile(
              "{\n.reg .pred p;\nsetp.gt.s32 p, %5, %6;\n"
              "@p ld.global.nc.L1::no_allocate.v4.f32 {%0,%1,%2,%3}, [%4];\n}"
              : "+f"(values[i][x].x), "+f"(values[i][x].y), "+f"(values[i][x].z), "+f"(values[i][x].w)
              : "l"(next + 32 * x), "r"(exist), "r"(32 * x));
      } else {
        const Index apart = view.stride[3];
        GAUGEBLOCK_UNROLL
        for (int x = 0; x < Quads; ++x) {
          const float* from = next + 32 * x * apart;
          if (32 * x < exist) values[i][x].x = __ldg(from);
          if (32 * x + 1 < exist) values[i][x].y = __ldg(from + apart);
          if (32 * x + 2 < exist) values[i][x].z = __ldg(from + 2 * apart);
          if (32 * x + 3 < exist) values[i][x].w = __ldg(from + 3 * apart);
        }
      }
      next += half_chunk;
    }
    if constexpr (Vector) {
      const float* const line = next + 7 * column;
      prefetch_if(ahead && left > chunk, line);
      prefetch_if(ahead && left > chunk + 32, line + half_chunk);
    }
  }

  __device__ __forceinline__ float largest_of_four(int i, int x) const {
    const float4& four = values[i][x];
    return larger_magnitude(larger_magnitude(four.x, four.y), larger_magnitude(four.z, four.w));
  }
  /// ± the largest |x| of this thread in each row, NaN when one is.
  __device__ __forceinline__ void find_largest(float (&all)[2]) const {
    GAUGEBLOCK_UNROLL
    for (int i = 0; i < 2; ++i) {
      all[i] = largest_of_four(i, 0);
      GAUGEBLOCK_UNROLL
      for (int x = 1; x < Quads; ++x) all[i] = larger_magnitude(all[i], largest_of_four(i, x));
    }
  }

  /// Scales both rows to the exponents of `all`, the largest |x| of each row, or to 0 where none are left. The
  /// first step of the two that split float16 does not hold lowers `bad_step`.
  __device__ __forceinline__ void scale(const float (&all)[2], int (&exponent)[2], int left, int step,
                                        int& bad_step) {
    bool is_finite[2];
    GAUGEBLOCK_UNROLL
    for (int i = 1; i >= 0; --i) {
      exponent[i] = max(exponent_of(all[i]) - top_exponent, -126);
      is_finite[i] = fabsf(all[i]) <= FLT_MAX;
      // Of the four neighbours' largest: 0 < |largest| < least, as integers, twice them to lose the sign.
      const unsigned least = 2 * __float_as_uint(full_precision * power_of_two(exponent[i])) - 1U;
      bool is_bad = !is_finite[i];
      GAUGEBLOCK_UNROLL
      for (int x = 0; x < Quads; ++x)
        is_bad = is_bad || 2 * __float_as_uint(largest_of_four(i, x)) - 1U < least;
      if (is_bad && left > 32 * i) bad_step = min(bad_step, step + 32 * i);
      const float factor = left > 32 * i ? power_of_two(-exponent[i]) : 0.0F;
      GAUGEBLOCK_UNROLL
      for (int x = 0; x < Quads; ++x) {
        values[i][x].x *= factor;
        values[i][x].y *= factor;
        values[i][x].z *= factor;
        values[i][x].w *= factor;
      }
    }
    if (__any_sync(0xffffffffU, !is_finite[0] || !is_finite[1])) {
      GAUGEBLOCK_UNROLL
      for (int i = 0; i < 2; ++i) {
        if (is_finite[i]) continue;
        exponent[i] = 0;  // a bad step must not spoil others through 0 · NaN
        clear(i);
      }
    }
  }

  /// Splits both rows, each times its factor, into tiles of 64 columns each, `High` and `Low` bytes behind
  /// `place`, where the first element of the first row belongs.
  template <int High, int Low, bool Scaled = false>
  __device__ __forceinline__ void store(std::uint32_t place, float factor0 = 1, float factor1 = 1) const {
    const std::uint32_t places[2] = {place, place ^ 64};  // 32 columns on; swizzled within 128 bytes
    GAUGEBLOCK_UNROLL
    for (int i = 0; i < 2; ++i) {
      const float factor = i == 0 ? factor0 : factor1;
      GAUGEBLOCK_UNROLL
      for (int x = 0; x < Quads; ++x) {
        float4 four = values[i][x];
        if (Scaled) four = make_float4(four.x * factor, four.y * factor, four.z * factor, four.w * factor);
        const std::uint32_t at = places[x % 2] + x / 2 * tile_bytes + i * 32 * 128;
        uint2 upper, lower;
        split(four.x, four.y, upper.x, lower.x);
        split(four.z, four.w, upper.y, lower.y);
        store_shared(at + High, upper);
        store_shared(at + Low, lower);
      }
    }
  }
};

/// The same of the eight threads of a row, of several rows at once.
template <int Count>
__device__ __forceinline__ void reduce_rows(float (&all)[Count]) {
  GAUGEBLOCK_UNROLL
  for (int offset = 1; offset < 8; offset *= 2) GAUGEBLOCK_UNROLL
  for (int i = 0; i < Count; ++i)
    all[i] = larger_magnitude(all[i], __shfl_xor_sync(0xffffffffU, all[i], offset));
}

/// Byte of an element of a tile.
__device__ __forceinline__ int place_in_tile(int row, int column) {
  return row * 128 + ((column / 8) ^ (row % 8)) * 16 + column % 8 * 2;
}

template <bool Vector, int NP, bool Outputs>
__device__ void load_chunks(const Block<NP, Outputs>& block, const RecurrenceViews& views, int thread) {
  using At = Place<NP, Outputs>;
  constexpr int quads = 2 * NP;  // of a row of q or k that a thread has
  const int lane = thread % 32;
  const int row = lane / 8 * 4 + thread / 32 % 4 + thread / 128 * 16, column = lane % 8 * 4;
  const bool first_of_row = lane % 8 == 0;
  const auto from = [&](const View4<const float>& view, int first) {
    return view.data + view.at(block.b, block.first_step + row, block.h, first + column);
  };
  Rows<quads> qk;      // q and k take turns in the same registers
  Rows<2> v, v_after;  // of this chunk and of the next
  GAUGEBLOCK_UNROLL
  for (int i = 0; i < 2; ++i) {
    qk.clear(i);
    v.clear(i);
  }
  const float *next_q = from(views.q, 0), *next_k = from(views.k, 0);
  const float* next_v = from(views.v, block.first_column);
  const int width_k = static_cast<int>(views.K) - column;
  const int width_v = static_cast<int>(views.V) - block.first_column - column;
  const bool ahead_k = 8 * column < static_cast<int>(views.K);
  const bool ahead_v = 8 * column < min(width_v + column, columns);
  int step = block.first_step + row;
  const auto left_from = [&](int t) { return static_cast<int>(views.T) - t; };  // rows that there are
  const auto load_qk = [&](const float*& next, const View4<const float>& view, int rows_left) {
    qk.template load<Vector>(next, view, width_k, rows_left, column, ahead_k);
  };
  load_qk(next_k, views.k, left_from(step));
  v.template load<Vector>(next_v, views.v, width_v, left_from(step), column, ahead_v);
  int bad_step = no_bad_step;
  const std::uint32_t place = block.base + place_in_tile(row, column);

  for (int c = 0; c < block.chunks; ++c) {
    const std::uint32_t to = place + (c & 1) * At::stage;
    signed char* const exponents = block.exponents(c, 0) + row;
    const auto note = [&](const int(&exponent)[2], int which) {
      if (!first_of_row) return;
      exponents[which * chunk] = static_cast<signed char>(exponent[0]);
      exponents[which * chunk + 32] = static_cast<signed char>(exponent[1]);
    };
    int exponent[2];
    float largest[2];
    qk.find_largest(largest);
    reduce_rows(largest);
    qk.scale(largest, exponent, left_from(step), step, bad_step);
    block.wait_empty(qk_empty, c);
    note(exponent, 0);
    qk.template store<At::k_high, At::k_low>(to);
    if (Outputs) load_qk(next_q, views.q, left_from(step));
    v.find_largest(largest);
    reduce_rows(largest);
    v.scale(largest, exponent, left_from(step), step, bad_step);
    block.wait_empty(v_empty, c);
    note(exponent, 1);
    block.arrive(exponents_ready, c);
    if (Outputs) {
      v.template store<At::v_high, At::v_low>(to);
      qk.find_largest(largest);
      reduce_rows(largest);
      qk.scale(largest, exponent, left_from(step), step, bad_step);
      note(exponent, 2);
      qk.template store<At::q_high, At::q_low>(to);
    }
    // Before more loads, for which the fence would wait.
    fence_async_proxy();
    block.arrive(qk_full, c);
    v_after = v;
    if (c + 1 < block.chunks) {
      load_qk(next_k, views.k, left_from(step + chunk));
      v_after.template load<Vector>(next_v, views.v, width_v, left_from(step + chunk), column, ahead_v);
    }
    block.wait(tables_ready, c);
    v.template store<At::w_high, At::w_low, true>(to, block.write_scale()[row],
                                                  block.write_scale()[row + 32]);
    fence_async_proxy();
    block.arrive(v_full, c);
    v = v_after;
    step += chunk;
  }
  if (bad_step != no_bad_step) block.call_bad(bad_step);
}

// ---- the state ----

/// Between the four warps of the state.
__device__ __forceinline__ void state_barrier() {
  asm volatile("bar.sync 1, 128;" ::: "memory");
}

/// What a lane of the state's warps holds of the chunk to come; a warp has a block of 16 steps. Lanes 0 … 15:
/// gate and beta of the step `lane`; lanes 16 … 31: beta of the step 31 - lane, and the gate after it, 1 at
/// the end of the block.
struct Multipliers {
  float gate, beta;
};
__device__ __forceinline__ int step_of(int warp, int lane) {
  return warp * 16 + (lane < 16 ? lane : 31 - lane);
}

/// Brings a chunk's multipliers after another's.
class MultiplierLoader {
 public:
  template <int NP, bool Outputs>
  __device__ __forceinline__ MultiplierLoader(const Block<NP, Outputs>& block, const RecurrenceViews& views,
                                              int warp, int lane)
      : is_last_(lane == 16), gate_is_later_(lane / 16) {
    const int t = block.first_step + step_of(warp, lane);
    left_ = min(static_cast<int>(views.T), block.first_step + block.chunks * chunk) - t;
    gate_ = views.gate.data + views.gate.at(block.b, t + gate_is_later_, block.h);
    beta_ = views.beta.data + views.beta.at(block.b, t, block.h);
  }
  __device__ __forceinline__ Multipliers next(const RecurrenceViews& views) {
    Multipliers result{1, 0};
    if (left_ > gate_is_later_ && !is_last_) result.gate = __ldg(gate_);
    if (left_ > 0) result.beta = __ldg(beta_);
    left_ -= chunk;
    // Hidden, so that no more registers than these are taken.
    gate_ += opaque(static_cast<long long>(chunk * views.gate.stride[1]));
    beta_ += opaque(static_cast<long long>(chunk * views.beta.stride[1]));
    return result;
  }

 private:
  const float *gate_, *beta_;
  bool is_last_;
  int gate_is_later_, left_;  // steps from beta_ on that there are
};

/// What the state needs of a chunk's tables.
struct StateFactors {
  float decay;  // Π gate of the chunk
  float unit;   // 2^e of the scaled writes W
};

/// The tables of chunk c, by the four warps of the state.
template <int NP, bool Outputs>
__device__ __forceinline__ StateFactors make_tables(const Block<NP, Outputs>& block, int c, Multipliers of,
                                                    int warp, int lane) {
  Tables& tables = block.tables(c);
  const int s = step_of(warp, lane), step = block.first_step + c * chunk + s;
  const bool is_finite = fabsf(of.gate) <= FLT_MAX;
  if (!is_finite) of.gate = 0;
  // Π gate from the start of the block to here, or from the end to after here.
  float window = of.gate;
  GAUGEBLOCK_UNROLL
  for (int offset = 1; offset < 16; offset *= 2) {
    const float other = __shfl_up_sync(0xffffffffU, window, offset, 16);
    if (lane % 16 >= offset) window *= other;
  }
  if (lane == 15) tables.products[warp] = window;
  block.wait(exponents_ready, c);
  float beta = scaled(of.beta, block.exponents(c, 0)[s] + block.exponents(c, 1)[s]);
  const bool beta_fits = fabsf(beta) <= large_factor && fabsf(of.beta) <= FLT_MAX;
  if (!beta_fits) beta = 0;
  if (lane < 16) {
    if (!is_finite || !beta_fits) block.call_bad(step);
    tables.prefix[s] = window;
    tables.gate[s] = of.gate;
    tables.beta[s] = beta;
  } else {
    tables.suffix_beta[s] = beta * window;
  }
  state_barrier();  // the products are there
  const float4 product = *reinterpret_cast<const float4*>(tables.products);
  const float decay = product.x * product.y * product.z * product.w;
  float write = lane < 16 ? 0.0F : beta * window;
  write *= warp < 1 ? product.y : 1.0F;
  write *= warp < 2 ? product.z : 1.0F;
  write *= warp < 3 ? product.w : 1.0F;
  const float largest_of_block = largest_magnitude(write);
  if (lane == 0) tables.largest[warp] = largest_of_block;
  state_barrier();  // the largest of each warp are there
  const float4 largest_of = *reinterpret_cast<const float4*>(tables.largest);
  const float largest = larger_magnitude(larger_magnitude(largest_of.x, largest_of.y),
                                         larger_magnitude(largest_of.z, largest_of.w));
  // The state after this chunk is lost, and with it the steps behind.
  const bool fits = fabsf(largest) <= large_factor && fabsf(decay) <= FLT_MAX;
  if (!fits && s == 0) block.call_bad(step + chunk);
  const int exponent = fits ? clamped(exponent_of(largest) + 1) : 0;  // |W| < 2^15
  if (lane >= 16) block.write_scale()[s] = fits ? write * power_of_two(-exponent) : 0.0F;
  block.arrive(tables_ready, c);
  return {opaque(fits ? decay : 0.0F), opaque(power_of_two(exponent))};
}

__device__ __forceinline__ void store_matrices(std::uint32_t address, const std::uint32_t (&values)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(address), "r"(values[0]),
               "r"(values[1]), "r"(values[2]), "r"(values[3])
               : "memory");
}

/// The split copy of the state for the outputs of chunk c, scaled by a power of two. `largest`: of a thread's
/// part.
template <int NP, bool Outputs>
__device__ __forceinline__ void copy_state(const Block<NP, Outputs>& block, const float (&state)[NP][32],
                                           float largest, int c, int warp, int lane) {
  using At = Place<NP, Outputs>;
  float* const largest_of = block.state_largest() + c % 2 * 4;  // a slow warp may still read the other four
  largest = largest_magnitude(largest);
  if (lane == 0) largest_of[warp] = largest;
  state_barrier();  // the four warps' are there
  GAUGEBLOCK_UNROLL
  for (int w = 0; w < 4; ++w) largest = larger_magnitude(largest, largest_of[w]);
  const bool fits = fabsf(largest) <= large_factor;
  const int exponent = fits ? max(exponent_of(largest) - top_exponent, -126) : 0;
  const float factor = fits ? power_of_two(-exponent) : 0.0F;
  if (warp == 0 && lane == 0 && !fits) block.call_bad(block.first_step + c * chunk);
  if (c >= 1) block.wait(state_free, c - 1);  // the outputs of the chunk before have used the copy
  if (warp == 0 && lane == 0) block.state_exponent()[c & 1] = exponent;
  const std::uint32_t place = block.base + place_in_tile(warp * 16 + lane % 16, lane / 16 * 8);
  GAUGEBLOCK_UNROLL
  for (int p = 0; p < NP; ++p) GAUGEBLOCK_UNROLL
  for (int j = 0; j < 8; j += 2) {
    std::uint32_t high[4], low[4];
    GAUGEBLOCK_UNROLL
    for (int x = 0; x < 4; ++x) {
      const int at = (j + x / 2) * 4 + x % 2 * 2;
      split(state[p][at] * factor, state[p][at + 1] * factor, high[x], low[x]);
    }
    const std::uint32_t to = (opaque(place) ^ (j * 16)) + p * tile_bytes;
    store_matrices(to + At::s_high, high);
    store_matrices(to + At::s_low, low);
  }
  fence_async_proxy();
  block.arrive(state_ready, c);
}

/// Calls use(p, i, place, count) for each pair i, i + 1 of a thread's part p of the state, with its place in a
/// state of the caller's and how many of the two exist there.
template <int NP, class T, class Use>
__device__ __forceinline__ void for_pairs(const View4<T>& view, const RecurrenceViews& views, int b, int h,
                                          int row, int column, Use&& use) {
  // One address, from which the others follow: worked out each by itself, they take longer than the stores.
  T* const first = view.data + view.at(b, h, row, column);
  const int width = static_cast<int>(views.V) - column, rows_left = static_cast<int>(views.K) - row;
  GAUGEBLOCK_UNROLL
  for (int p = 0; p < NP; ++p) GAUGEBLOCK_UNROLL
  for (int x = 0; x < 2; ++x) {
    T* const of_row = first + opaque(static_cast<long long>((64 * p + 8 * x) * view.stride[2]));
    const int exist = rows_left > 64 * p + 8 * x ? width : 0;
    GAUGEBLOCK_UNROLL
    for (int j = 0; j < 8; ++j) use(p, 4 * j + 2 * x, of_row + 8 * j * view.stride[3], exist - 8 * j);
  }
}

template <bool Vector, int NP>
__device__ __forceinline__ void load_state(const RecurrenceViews& views, int b, int h, int row, int column,
                                           float (&state)[NP][32]) {
  const View4<const float>& view = views.initial_state;
  for_pairs<NP>(view, views, b, h, row, column, [&](int p, int i, const float* from, int count) {
    if constexpr (Vector) {
      if (count <= 0) return;
      const float2 pair = __ldg(reinterpret_cast<const float2*>(from));
      state[p][i] = pair.x;
      state[p][i + 1] = pair.y;
    } else {
      if (count > 0) state[p][i] = __ldg(from);
      if (count > 1) state[p][i + 1] = __ldg(from + view.stride[3]);
    }
  });
}

template <bool Vector, int NP>
__device__ __forceinline__ void store_state(const RecurrenceViews& views, int b, int h, int row, int column,
                                            const float (&state)[NP][32]) {
  const View4<float>& view = views.final_state;
  for_pairs<NP>(view, views, b, h, row, column, [&](int p, int i, float* to, int count) {
    if constexpr (Vector) {
      store_pair_if(count > 0, to, state[p][i], state[p][i + 1]);
    } else {
      if (count > 0) *to = state[p][i];
      if (count > 1) to[view.stride[3]] = state[p][i + 1];
    }
  });
}

template <int NP, bool Outputs>
__device__ void follow_state(const Block<NP, Outputs>& block, const RecurrenceViews& views, Cut cut,
                             bool vector_states, float* segment_states, float* segment_decays, int thread) {
  using At = Place<NP, Outputs>;
  const int warp = thread / 32, lane = thread % 32;
  float state[NP][32];
  const int slot = (block.bh * cut.column_blocks + block.first_column / columns) * pieces_of(cut);
  constexpr Index slot_floats = NP * 32 * 128;

  // Where a thread's part of the state begins: rows 8 and 64 on, columns 1 and multiples of 8 on.
  const int row = warp * 16 + lane / 4, column = block.first_column + lane % 4 * 2;
  GAUGEBLOCK_UNROLL
  for (int p = 0; p < NP; ++p) GAUGEBLOCK_UNROLL
  for (int i = 0; i < 32; ++i) state[p][i] = 0;
  if (Outputs && views.initial_state.data != nullptr) {
    if (vector_states)
      load_state<true>(views, block.b, block.h, row, column, state);
    else
      load_state<false>(views, block.b, block.h, row, column, state);
  }
  const auto largest_in = [&](int p, float largest) {
    GAUGEBLOCK_UNROLL
    for (int i = 0; i < 32; ++i) largest = larger_magnitude(largest, state[p][i]);
    return largest;
  };
  float whole_decay = 1, largest = 0;
  MultiplierLoader multipliers(block, views, warp, lane);
  StateFactors of = make_tables(block, 0, multipliers.next(views), warp, lane);
  Multipliers next = multipliers.next(views);
  if (Outputs) {
    wait_for_kernel_in_front();
#pragma unroll(NP == 1 ? 2 : 1)  // as many states on their way as registers can hold
    for (int before = 0; before < block.unit * cut.pieces; ++before) {
      const float decay = segment_decays[slot + before];
      const float* from = segment_states + (slot + before) * slot_floats + thread;
      GAUGEBLOCK_UNROLL
      for (int p = 0; p < NP; ++p) GAUGEBLOCK_UNROLL
      for (int i = 0; i < 32; ++i) state[p][i] = fmaf(decay, state[p][i], __ldcg(from + (p * 32 + i) * 128));
    }
  }
  GAUGEBLOCK_UNROLL
  for (int p = 0; p < NP; ++p) largest = largest_in(p, largest);
  if (Outputs) copy_state(block, state, largest, 0, warp, lane);

  for (int c = 0; c < block.chunks; ++c) {
    block.wait(qk_full, c);
    block.wait(v_full, c);
    const std::uint64_t stage = descriptor(opaque(block.base + (c & 1) * At::stage));
    const StateFactors now = of;
    whole_decay *= now.decay;
    largest = 0;
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
      // Meanwhile the next chunk's tables, for which the loading warpgroups wait.
      if (p == 0 && c + 1 < block.chunks) {
        of = make_tables(block, c + 1, next, warp, lane);
        next = multipliers.next(views);
      }
      if (Outputs && p > 0) largest = largest_in(p - 1, largest);
      matrix_wait<0>(writes);
      GAUGEBLOCK_UNROLL
      for (int i = 0; i < 32; ++i) state[p][i] = fmaf(writes[i], now.unit, state[p][i] * now.decay);
    }
    block.arrive(qk_empty, c);
    block.arrive(v_empty, c);
    if (Outputs && c + 1 < block.chunks)
      copy_state(block, state, largest_in(NP - 1, largest), c + 1, warp, lane);
  }
  if (!Outputs) {
    float* to = segment_states + (slot + block.unit) * slot_floats + thread;
    GAUGEBLOCK_UNROLL
    for (int p = 0; p < NP; ++p) GAUGEBLOCK_UNROLL
    for (int i = 0; i < 32; ++i) to[(p * 32 + i) * 128] = state[p][i];
    if (thread == 0) segment_decays[slot + block.unit] = whole_decay;
  } else if (block.unit == cut.segments - 1) {
    if (vector_states)
      store_state<true>(views, block.b, block.h, row, column, state);
    else
      store_state<false>(views, block.b, block.h, row, column, state);
  }
}

// ---- outputs ----

/// What a chunk's weights leave for its outputs, of the thread's two rows.
struct RowFactors {
  float decay[2];     // Π gate from the start of the chunk
  float largest[2];   // weight of the row
  int exponent_p[2];  // weights are P · 2^exponent
  int exponent_q[2];
};

/// The products of gates inside a block of 16 steps that a lane needs: of rows r = lane / 4 and r + 8, and
/// steps 2p, 2p + 1, 2p + 8 and 2p + 9, p = lane % 4, 0 for later steps. `gate`: of the block.
struct BlockDecays {
  float of[2][4];

  __device__ __forceinline__ BlockDecays(const float* gate, int lane) {
    const int r = lane / 4, s = lane % 4 * 2 + 1;
    // Over the steps from s + 1, 8, s + 9 to r, r + 8, r + 8.
    float upper = r > s ? gate[r] : 1.0F, all = gate[r + 8], lower = r > s ? all : 1.0F;
    GAUGEBLOCK_UNROLL
    for (int offset = 4; offset < 32; offset *= 2) {
      const float of_upper = __shfl_up_sync(0xffffffffU, upper, offset),
                  of_all = __shfl_up_sync(0xffffffffU, all, offset),
                  of_lower = __shfl_up_sync(0xffffffffU, lower, offset);
      if (lane < offset) continue;
      upper *= of_upper;
      all *= of_all;
      lower *= of_lower;
    }
    const float across = __shfl_sync(0xffffffffU, upper, 28 + lane % 4) * all;
    of[0][1] = s <= r ? upper : 0.0F;
    of[0][0] = s <= r ? upper * gate[s] : (s == r + 1 ? 1.0F : 0.0F);
    of[0][2] = of[0][3] = 0;
    of[1][1] = across;
    of[1][0] = across * gate[s];
    of[1][3] = s <= r ? lower : 0.0F;
    of[1][2] = s <= r ? lower * gate[s + 8] : (s == r + 1 ? 1.0F : 0.0F);
  }
};

template <bool Vector, int NP>
__device__ void compute_outputs(const Block<NP, true>& block, const RecurrenceViews& views, int thread) {
  using At = Place<NP, true>;
  const int warp = thread / 32, lane = thread % 32, r = lane / 4, pair = lane % 4;
  const int rows[2] = {warp * 16 + r, warp * 16 + r + 8};
  float carried[32], score[32], weight[32];
  std::uint32_t high[16], low[16];
  RowFactors of{};
  GAUGEBLOCK_UNROLL
  for (int i = 0; i < 32; ++i) carried[i] = score[i] = 0;

  const auto begin_scores = [&](int c) {
    const std::uint64_t stage = descriptor(opaque(block.base + (c & 1) * At::stage));
    // Past the end a product that nobody uses: no branch may stand around matrix instructions.
    if (c < block.chunks) block.wait(qk_full, c);
    matrix_begin(score);
    GAUGEBLOCK_UNROLL
    for (int part = 0; part < 3; ++part) GAUGEBLOCK_UNROLL
    for (int x = 0; x < NP * 4; ++x)
      matrix_multiply<0, 0>(
          score, advanced(stage, (part == 0 ? At::q_low : At::q_high) + x / 4 * tile_bytes + x % 4 * 32),
          advanced(stage, (part == 1 ? At::k_low : At::k_high) + x / 4 * tile_bytes + x % 4 * 32),
          (part | x) != 0);
    wgmma_commit();
  };

  // weight_ts = beta_s Π gate_{s+1} … gate_t, 0 for s > t; while the scores come.
  const auto make_weights = [&](int c) {
    const Tables& tables = block.tables(c);
    if (c < block.chunks) block.wait(tables_ready, c);
    const BlockDecays own(tables.gate + warp * 16, lane);
    const float from_start[2] = {tables.prefix[rows[0]], tables.prefix[rows[1]]};
    const float4 product = *reinterpret_cast<const float4*>(tables.products);
    // Π gate of the blocks between block 0, 1 or 2 and the warp's own.
    const float from_1 = warp > 2 ? product.z : 1.0F, from_0 = (warp > 1 ? product.y : 1.0F) * from_1,
                from_2 = 1, before = warp > 0 ? product.x * from_0 : 1.0F;
    GAUGEBLOCK_UNROLL
    for (int x = 0; x < 2; ++x) of.decay[x] = from_start[x] * before;
    GAUGEBLOCK_UNROLL
    for (int from = 0; from < 4; ++from) {  // the block of steps s
      const bool is_own = from == warp;
      const float between = from == 0 ? from_0 : from == 1 ? from_1 : from_2;
      // Of later blocks both factors are 0, not one of them: an overflown product times 0 would be NaN.
      const float* const of_steps = from < warp ? tables.suffix_beta + from * 16
                                    : is_own    ? tables.beta + from * 16
                                                : block.zeros();
      GAUGEBLOCK_UNROLL
      for (int j = 2 * from; j < 2 * from + 2; ++j) {
        const float2 factor = *reinterpret_cast<const float2*>(of_steps + j % 2 * 8 + pair * 2);
        GAUGEBLOCK_UNROLL
        for (int x = 0; x < 2; ++x) {
          const float earlier = from < warp ? from_start[x] * between : 0.0F;
          weight[4 * j + 2 * x] = (is_own ? own.of[x][j % 2 * 2] : earlier) * factor.x;
          weight[4 * j + 2 * x + 1] = (is_own ? own.of[x][j % 2 * 2 + 1] : earlier) * factor.y;
        }
      }
    }
    GAUGEBLOCK_UNROLL
    for (int i = 0; i < 32; ++i) asm volatile("" ::"f"(weight[i]));
  };

  // P = scores · weights, each row scaled and split.
  const auto split_weights = [&](int c) {
    float largest[2] = {0, 0};
    GAUGEBLOCK_UNROLL
    for (int i = 0; i < 32; ++i) {
      score[i] *= weight[i];
      largest[i % 4 / 2] = larger_magnitude(largest[i % 4 / 2], score[i]);
    }
    float factor[2];
    GAUGEBLOCK_UNROLL
    for (int x = 0; x < 2; ++x) {
      largest[x] = larger_magnitude(largest[x], __shfl_xor_sync(0xffffffffU, largest[x], 1));
      largest[x] = larger_magnitude(largest[x], __shfl_xor_sync(0xffffffffU, largest[x], 2));
      of.largest[x] = fabsf(largest[x]);
      of.exponent_p[x] = clamped(exponent_of(largest[x]) - top_exponent);
      of.exponent_q[x] = block.exponents(c, 2)[rows[x]];
      factor[x] = power_of_two(-of.exponent_p[x]);
    }
    GAUGEBLOCK_UNROLL
    for (int j = 0; j < 8; ++j) GAUGEBLOCK_UNROLL
    for (int x = 0; x < 2; ++x)
      split(score[4 * j + 2 * x] * factor[x], score[4 * j + 2 * x + 1] * factor[x], high[2 * j + x],
            low[2 * j + x]);
  };

  float* next_y =
      views.y.data + views.y.at(block.b, block.first_step + rows[0], block.h, block.first_column + pair * 2);
  const int width = static_cast<int>(views.V) - block.first_column - pair * 2;  // columns from there on
  int left = static_cast<int>(views.T) - block.first_step - rows[0];

  // The first chunk's q, which is loaded only after k.
  GAUGEBLOCK_UNROLL
  for (int line = 0; line < 2 * NP; line += 2) {
    const int t = block.first_step + thread / 2, at = (line + thread % 2) * 32;
    const bool exists = t < views.T && at < views.K;
    prefetch_if(exists, views.q.data + (exists ? views.q.at(block.b, t, block.h, at) : 0));
  }
  begin_scores(0);
  make_weights(0);
  matrix_wait<0>(score);
  split_weights(0);
  for (int c = 0; c < block.chunks; ++c) {
    const RowFactors now = of;
    block.wait(state_ready, c);
    const std::uint64_t stage = descriptor(opaque(block.base + (c & 1) * At::stage));
    const std::uint64_t state = descriptor(opaque(block.base));
    matrix_begin(carried);
    GAUGEBLOCK_UNROLL
    for (int part = 0; part < 3; ++part) GAUGEBLOCK_UNROLL
    for (int x = 0; x < NP * 4; ++x)
      matrix_multiply<0, 1>(
          carried, advanced(stage, (part == 0 ? At::q_low : At::q_high) + x / 4 * tile_bytes + x % 4 * 32),
          advanced(state, (part == 1 ? At::s_low : At::s_high) + x * 2048), (part | x) != 0);
    wgmma_commit();
    begin_scores(c + 1);
    const int state_exponent = block.state_exponent()[c & 1];
    matrix_wait<1>(carried);
    block.arrive(state_free, c);
    block.arrive(qk_empty, c);
    make_weights(c + 1);
    int exponent_p[2];
    float factor_carried[2];
    GAUGEBLOCK_UNROLL
    for (int x = 0; x < 2; ++x) {
      // Without weights their exponent is free.
      exponent_p[x] =
          now.largest[x] == 0 ? clamped(exponent_of(now.decay[x]) + state_exponent - 60) : now.exponent_p[x];
      factor_carried[x] = scaled(now.decay[x], state_exponent - exponent_p[x]);
    }
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
    matrix_wait<0>(score);
    block.arrive(v_empty, c);

    GAUGEBLOCK_UNROLL
    for (int x = 0; x < 2; ++x) {
      const int exist = left > 8 * x ? width : 0;
      if (exist > 0 && !(now.largest[x] < 0x1p120F && fabsf(factor_carried[x]) <= 0x1p62F))
        block.call_bad(block.first_step + c * chunk + rows[x]);
      const int exponent = now.exponent_q[x] + exponent_p[x];
      const float factor = power_of_two(clamped(exponent));
      if (exponent != clamped(exponent)) {
        const float rest = power_of_two(clamped(exponent - clamped(exponent)));
        GAUGEBLOCK_UNROLL
        for (int i = 0; i < 16; ++i) carried[i / 2 * 4 + 2 * x + i % 2] *= rest;
      }
      float* const to = next_y + (x == 0 ? 0 : opaque(static_cast<long long>(8 * views.y.stride[1])));
      GAUGEBLOCK_UNROLL
      for (int j = 0; j < 8; ++j) {
        const float y0 = carried[4 * j + 2 * x] * factor, y1 = carried[4 * j + 2 * x + 1] * factor;
        if constexpr (Vector) {
          store_pair_if(exist > 8 * j, to + 8 * j, y0, y1);
        } else {
          if (exist > 8 * j) to[8 * j * views.y.stride[3]] = y0;
          if (exist > 8 * j + 1) to[(8 * j + 1) * views.y.stride[3]] = y1;
        }
      }
    }
    next_y += opaque(static_cast<long long>(chunk * views.y.stride[1]));
    left -= chunk;
    split_weights(c + 1);
  }
}

// ---- repair ----

constexpr int repair_threads = 512;
static_assert(repair_threads == 128 * (2 + load_groups), "a block of outputs_kernel does a repair as it is");
constexpr int warp_columns = columns / (repair_threads / 32);

/// Outputs of a column block from its first bad step on, and then its final state: the definition in float32,
/// step by step, a warp for every four columns of the state. By all threads of a block of 512.
__device__ void repair(const RecurrenceViews& views, int b, int h, int first_column, int first_bad) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Index j = first_column + static_cast<int>(threadIdx.x) / 32 * warp_columns;
  const int width = static_cast<int>(min(views.V - j, Index{warp_columns}));  // columns of this warp
  float state[warp_columns][most_columns / 32];
  GAUGEBLOCK_UNROLL
  for (int c = 0; c < warp_columns; ++c) GAUGEBLOCK_UNROLL
  for (int x = 0; x < most_columns / 32; ++x) {
    const Index i = lane + 32 * x;
    state[c][x] = 0;
    if (c < width && i < views.K && views.initial_state.data != nullptr)
      state[c][x] = views.initial_state.data[views.initial_state.at(b, h, i, j + c)];
  }
  for (Index t = 0; t < views.T; ++t) {
    const float gate = views.gate.data[views.gate.at(b, t, h)],
                beta = views.beta.data[views.beta.at(b, t, h)];
    float v[warp_columns], sum[warp_columns];
    GAUGEBLOCK_UNROLL
    for (int c = 0; c < warp_columns; ++c) {
      v[c] = c < width ? views.v.data[views.v.at(b, t, h, j + c)] : 0.0F;
      sum[c] = 0;
    }
    GAUGEBLOCK_UNROLL
    for (int x = 0; x < most_columns / 32; ++x) {
      const Index i = lane + 32 * x;
      if (i >= views.K) continue;
      const float q = views.q.data[views.q.at(b, t, h, i)], k = beta * views.k.data[views.k.at(b, t, h, i)];
      GAUGEBLOCK_UNROLL
      for (int c = 0; c < warp_columns; ++c) {
        state[c][x] = fmaf(gate, state[c][x], k * v[c]);
        sum[c] = fmaf(q, state[c][x], sum[c]);
      }
    }
    if (t < first_bad) continue;
    GAUGEBLOCK_UNROLL
    for (int offset = 16; offset > 0; offset /= 2) GAUGEBLOCK_UNROLL
    for (int c = 0; c < warp_columns; ++c) sum[c] += __shfl_xor_sync(0xffffffffU, sum[c], offset);
    GAUGEBLOCK_UNROLL
    for (int c = 0; c < warp_columns; ++c)
      if (lane == 0 && c < width) views.y.data[views.y.at(b, t, h, j + c)] = sum[c];
  }
  GAUGEBLOCK_UNROLL
  for (int c = 0; c < warp_columns; ++c) GAUGEBLOCK_UNROLL
  for (int x = 0; x < most_columns / 32; ++x) {
    const Index i = lane + 32 * x;
    if (c < width && i < views.K) views.final_state.data[views.final_state.at(b, h, i, j + c)] = state[c][x];
  }
}

// ---- kernels ----

/// What is a warpgroup's own to know. Each works it out for itself: kept from before they part, it would take
/// registers that none can spare.
template <int NP, bool Outputs>
__device__ __forceinline__ Block<NP, Outputs> make_block(const RecurrenceViews& views, Cut cut,
                                                         char* memory) {
  Block<NP, Outputs> block;
  block.memory = memory;
  block.base = shared_address(memory);
  const int index = static_cast<int>(opaque(blockIdx.x)), units = Outputs ? cut.segments : pieces_of(cut);
  block.first_column = index % cut.column_blocks * columns;
  block.unit = index / cut.column_blocks % units;
  block.bh = index / cut.column_blocks / units;
  block.b = block.bh / static_cast<int>(views.H);
  block.h = block.bh % static_cast<int>(views.H);
  const int segment = Outputs ? block.unit : block.unit / cut.pieces;
  int first = segment * cut.chunks_of_segment, end = first + cut.chunks_of_segment;
  if (Outputs) {
    end = min(end, static_cast<int>((views.T + chunk - 1) / chunk));
  } else {
    first += block.unit % cut.pieces * cut.chunks_of_piece;
    end = min(end, first + cut.chunks_of_piece);
  }
  block.first_step = first * chunk;
  block.chunks = end - first;
  return block;
}

/// Barriers and what else is there before the first chunk.
template <int NP, bool Outputs>
__device__ void begin_block(char* memory) {
  Block<NP, Outputs> block;
  block.memory = memory;
  block.base = shared_address(memory);
  if (threadIdx.x == 0) {
    const int users = Outputs ? 256 : 128;  // threads that use a stage: those of the state and of the outputs
    for (int stage = 0; stage < 2; ++stage) {
      barrier_init(block.barrier(qk_full, stage), 128 * load_groups);
      barrier_init(block.barrier(v_full, stage), 128 * load_groups);
      barrier_init(block.barrier(qk_empty, stage), users);
      barrier_init(block.barrier(v_empty, stage), users);
      barrier_init(block.barrier(state_ready, stage), 128);
      barrier_init(block.barrier(state_free, stage), 128);
      barrier_init(block.barrier(tables_ready, stage), 128);
      barrier_init(block.barrier(exponents_ready, stage), 128 * load_groups);
    }
    *block.bad_step() = no_bad_step;
    fence_barrier_init();
  }
  if (threadIdx.x < 16) block.zeros()[threadIdx.x] = 0;
  __syncthreads();  // the barriers are there
}

/// Blocks of segment_kernel that a multiprocessor holds.
constexpr int resident_pieces(int NP) {
  return NP == 1 ? 2 : 1;
}

/// What each piece of a segment but the last writes by itself: its state from a state of zero, and its decay.
template <int NP>
__global__ void __launch_bounds__(128 * (1 + load_groups), resident_pieces(NP))
    segment_kernel(RecurrenceViews views, Cut cut, Vectors vectors, float* segment_states,
                   float* segment_decays) {
  extern __shared__ __align__(1024) char shared_memory[];
  let_next_kernel_begin();
  begin_block<NP, false>(shared_memory);
  const Block<NP, false> block = make_block<NP, false>(views, cut, shared_memory);
  const int thread = static_cast<int>(threadIdx.x);
  const bool follows = __shfl_sync(0xffffffffU, thread / 128, 0) == 0;
  if (NP == 1 && follows) asm volatile("setmaxnreg.inc.sync.aligned.u32 96;");
  if (NP == 1 && !follows) asm volatile("setmaxnreg.dec.sync.aligned.u32 72;");
  if (follows)
    follow_state(block, views, cut, false, segment_states, segment_decays, thread);
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
  if (cut.segments > 1) let_next_kernel_begin();  // which is repair_kernel
  begin_block<NP, true>(shared_memory);
  const int group = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / 128, 0);
  const int thread = static_cast<int>(threadIdx.x) - group * 128;
  const auto make = [&] { return make_block<NP, true>(views, cut, shared_memory); };
  if (group == 0) {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 176;");
    if (vectors.y)
      compute_outputs<true>(make(), views, thread);
    else
      compute_outputs<false>(make(), views, thread);
  } else if (group == 1) {
    follow_state(make(), views, cut, vectors.states, segment_states, segment_decays, thread);
  } else {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 104;");
    if (vectors.inputs)
      load_chunks<true>(make(), views, thread + (group - 2) * 128);
    else
      load_chunks<false>(make(), views, thread + (group - 2) * 128);
  }
  __syncthreads();  // outputs are written, and no bad step comes any more
  const int bad_step = *reinterpret_cast<int*>(shared_memory + Place<NP, true>::bad_step);
  if (cut.segments > 1) {
    if (threadIdx.x == 0) bad_steps[blockIdx.x] = bad_step;
  } else if (bad_step != no_bad_step) {
    // As many registers for each as at the launch, which is what the compiler counts on.
    if (group == 0) asm volatile("setmaxnreg.dec.sync.aligned.u32 128;");
    if (group >= 2) asm volatile("setmaxnreg.inc.sync.aligned.u32 128;");
    const Block<NP, true> block = make();
    repair(views, block.b, block.h, block.first_column, bad_step);
  }
}

/// After an outputs_kernel of several segments, or instead of one where T is 0.
__global__ void __launch_bounds__(repair_threads)
    repair_kernel(RecurrenceViews views, Cut cut, const int* bad_steps) {
  const int column_block = static_cast<int>(blockIdx.x);  // of all (b,h)
  const int bh = column_block / cut.column_blocks, lane = static_cast<int>(threadIdx.x) % 32;
  wait_for_kernel_in_front();
  int first_bad = views.T == 0 ? 0 : no_bad_step;
  for (int segment = lane; views.T > 0 && segment < cut.segments; segment += 32)
    first_bad =
        min(first_bad,
            bad_steps[(bh * cut.segments + segment) * cut.column_blocks + column_block % cut.column_blocks]);
  first_bad = __reduce_min_sync(0xffffffffU, first_bad);
  if (first_bad == no_bad_step) return;
  repair(views, bh / static_cast<int>(views.H), bh % static_cast<int>(views.H),
         column_block % cut.column_blocks * columns, first_bad);
}

// ---- launches ----

constexpr Index multiprocessors = 132;  // of an H100 or H200; fewer only make the last wave longer
constexpr Index most_pieces = 8;

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
  // Pieces so that the multiprocessors are done at about the same time; a piece costs about a chunk more.
  const Index resident = multiprocessors * resident_pieces(arguments.key_size() <= 64 ? 1 : 2);
  Index least = 0;
  for (Index pieces = 1; pieces <= most_pieces; ++pieces) {
    const Index chunks_of_piece = ceil_div(cut.chunks_of_segment, pieces);
    const Index cost = ceil_div(blocks * (cut.segments - 1) * pieces, resident) * (chunks_of_piece + 1);
    if (pieces > 1 && (cost >= least || chunks_of_piece * (pieces - 1) >= cut.chunks_of_segment)) continue;
    least = cost;
    cut.pieces = static_cast<int>(pieces);
    cut.chunks_of_piece = static_cast<int>(chunks_of_piece);
  }
  return cut;
}

/// Workspace, in floats: states and decays of pieces, then the first bad step of each block.
struct Workspace {
  Index states, decays, bad_steps, floats;
};

Workspace workspace_of(const RecurrenceArguments& arguments, const Cut& cut) {
  const Index blocks = arguments.batches() * arguments.heads() * cut.column_blocks;
  const Index parts = arguments.key_size() <= 64 ? 1 : 2;
  Workspace workspace{};
  workspace.decays = blocks * pieces_of(cut);
  workspace.states = workspace.decays * parts * 32 * 128;
  workspace.bad_steps = blocks * cut.segments;
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
                        rows_are_aligned(arguments.y, 2),
                        rows_are_aligned(arguments.final_state, 2) &&
                            (!arguments.initial_state || rows_are_aligned(*arguments.initial_state, 2))};
  const Index blocks = views.B * views.H * cut.column_blocks;
  if (views.T > 0) {
    if (cut.segments > 1)
      launch(GAUGEBLOCK_KERNEL(segment_kernel<NP>), grid_of(blocks * pieces_of(cut)),
             dim3(128 * (1 + load_groups)), Place<NP, false>::bytes, context, views, cut, vectors, memory,
             decays);
    launch_dependent(GAUGEBLOCK_KERNEL(outputs_kernel<NP>), grid_of(blocks * cut.segments),
                     dim3(128 * (2 + load_groups)), Place<NP, true>::bytes, cut.segments > 1, context, views,
                     cut, vectors, memory, decays, bad_steps);
  }
  if (views.T == 0 || cut.segments > 1)
    launch_dependent(GAUGEBLOCK_KERNEL(repair_kernel), grid_of(blocks), dim3(repair_threads), 0, views.T > 0,
                     context, views, cut, bad_steps);
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
  return too_many_blocks(arguments.batches() * arguments.heads() * cut.column_blocks *
                         (pieces_of(cut) > cut.segments ? pieces_of(cut) : cut.segments));
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
