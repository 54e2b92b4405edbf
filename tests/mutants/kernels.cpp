// Wrong kernels, for the interpreter alone: a block that keeps the state in shared memory, a warp per column,
// and an axial pass by one block, each written out once with a switch wherever one of the faults changes it.
#include <functional>
#include <utility>

#include "gaugeblock/gpu/axial/block_steps.h"
#include "gaugeblock/gpu/axial/copy.h"
#include "gaugeblock/gpu/recurrence/kernel_views.h"
#include "gaugeblock/verify/cases/errors.h"
#include "gaugeblock/verify/variants/axial_cpu.h"
#include "gaugeblock/verify/variants/gpu_variants.h"
#include "mutant.h"

namespace gaugeblock {
namespace {

// This file is compiled for the interpreter only.
using namespace gpu;
using namespace gpu::simt_backend;

enum class Fault {
  none,
  // a block per (b,h)
  no_barrier_after_staging,
  no_barrier_before_reading,
  no_barrier_before_restaging,
  barrier_for_some_threads,
  result_over_staged_q,
  state_not_zeroed,
  padded_lane_not_written,
  gate_read_ahead,
  v_read_in_fours,
  y_written_in_fours,
  pairs_rounded_down,
  shared_without_opt_in,
  thread_per_element,
  grid_per_step,
  // a warp per column
  shuffle_in_a_branch,
  half_a_warp_named,
  only_rows_named,
  half_a_warp_added,
  every_lane_writes,
  no_syncwarp_in_tree,
  atomic_sum,
  sixteen_bytes_anywhere,
  // an axial pass
  no_barrier_after_load,
  no_barrier_after_norm,
  no_barrier_after_projection,
  no_barrier_before_output,
  barrier_in_ragged_loop,
  output_not_zeroed,
  keys_read_in_eights,
  padded_tile_without_opt_in,
};

// ---- the recurrence, a block per (b,h)

__global__ void block_kernel(RecurrenceViews views, Fault fault) {
  const Tensors tensors(views);
  GAUGEBLOCK_DYNAMIC_SHARED(float, shared);
  const Index K = views.K, V = views.V, T = views.T, me = threadIdx.x, threads = blockDim.x;
  const Index h = blockIdx.x % views.H, b = blockIdx.x / views.H;
  const auto state = shared.slice(Index{0}, K * V);
  const auto q = shared.slice(K * V, K + 1);
  const auto k = shared.slice(K * V + K + 1, K);
  const auto v = shared.slice(K * V + 2 * K + 1, V);

  if (fault != Fault::state_not_zeroed || views.initial_state.data != nullptr)
    for (Index at = me; at < K * V; at += threads)
      state[at] = load_initial_state(tensors, views, b, h, at / V, at % V);
  float next_gate = 0;  // loaded one step ahead
  if (T > 0) next_gate = tensors.gate[views.gate.at(b, 0, h)];
  for (Index t = 0; t < T; ++t) {
    const float gate = next_gate;
    if (t + 1 < T || fault == Fault::gate_read_ahead) next_gate = tensors.gate[views.gate.at(b, t + 1, h)];
    const float beta = tensors.beta[views.beta.at(b, t, h)];
    for (Index i = me; i < K; i += threads) {
      q[i] = tensors.q[views.q.at(b, t, h, i)];
      k[i] = tensors.k[views.k.at(b, t, h, i)];
    }
    const Index loaded = fault == Fault::v_read_in_fours ? ceil_div(V, 4) * 4 : V;
    for (Index j = me; j < loaded; j += threads) {
      const float value = tensors.v[views.v.at(b, t, h, j)];
      if (j < V) v[j] = value;
    }
    if (fault != Fault::no_barrier_after_staging) __syncthreads();
    for (Index at = me; at < K * V; at += threads) {
      const float k_i = k[at / V];
      const float v_j = v[at % V];
      const float before = state[at];
      state[at] = fmaf(gate, before, (beta * k_i) * v_j);
    }
    if (fault == Fault::barrier_for_some_threads) {
      if (me < V) __syncthreads();
    } else if (fault != Fault::no_barrier_before_reading) {
      __syncthreads();
    }
    const Index written = fault == Fault::y_written_in_fours ? ceil_div(V, 4) * 4 : V;
    for (Index j = me; j < written; j += threads) {
      float sum = 0;
      for (Index i = 0; i < K; ++i) {
        const float q_i = q[i];
        const float s = state[i * V + (j < V ? j : 0)];
        sum = fmaf(q_i, s, sum);
      }
      if (fault == Fault::padded_lane_not_written && K % 2 == 1) {
        const float padding = q[K];  // the sum goes in twos; what it takes here counts 0 times
        sum = fmaf(padding, 0.0F, sum);
      }
      if (fault == Fault::result_over_staged_q) {
        q[j % K] = sum;
        sum = q[j % K];
      }
      tensors.y[views.y.at(b, t, h, j)] = sum;
    }
    if (fault != Fault::no_barrier_before_restaging) __syncthreads();
  }
  for (Index at = me; at < K * V; at += threads) {
    const float s = state[at];
    tensors.final_state[views.final_state.at(b, h, at / V, at % V)] = s;
  }
}

/// A launch whose refusal nobody looks at, by a program that never asked for more than 48 KB.
template <class... Parameters, class... Arguments>
void launch_unchecked(void (*kernel)(Parameters...), Index blocks, Index threads, Index shared_floats,
                      LaunchContext& context, const Arguments&... arguments) {
  simt::LaunchShape shape;
  shape.grid = {static_cast<std::uint32_t>(blocks), 1, 1};
  shape.block = {static_cast<std::uint32_t>(threads), 1, 1};
  shape.dynamic_shared_bytes = floats_bytes(shared_floats);
  simt::LaunchRecord record =
      simt::interpret("unchecked", shape, context.simt, [&] { kernel(arguments...); });
  std::erase_if(record.reports, [](const simt::Report& report) {  // the fault itself
    return report.kind == simt::ReportKind::launch_refused;
  });
  context.launches.push_back(std::move(record));
}

void run_block(const RecurrenceArguments& arguments, LaunchContext& context, Fault fault) {
  const RecurrenceViews views = views_of(arguments);
  const Index K = views.K, V = views.V, T = views.T;
  const Index floats = K * V + 2 * K + 1 + V;
  Index blocks = views.B * views.H;
  if (fault == Fault::pairs_rounded_down) blocks = blocks > 1 ? blocks / 2 * 2 : blocks;
  if (fault == Fault::shared_without_opt_in)  // room for the whole sequence
    return launch_unchecked(block_kernel, blocks, 64, floats + T * (2 * K + V), context, views, fault);
  if (fault == Fault::thread_per_element)
    return launch_unchecked(block_kernel, blocks, K * V, floats, context, views, fault);
  if (fault == Fault::grid_per_step)
    return launch_unchecked(block_kernel, T > 0 ? blocks : 0, 64, floats, context, views, fault);
  launch(GAUGEBLOCK_KERNEL(block_kernel), grid_of(blocks), dim3(64), floats_bytes(floats), context, views,
         fault);
}

// ---- the recurrence, a warp per column, K <= 32

__global__ void warp_kernel(RecurrenceViews views, Fault fault) {
  const Tensors tensors(views);
  GAUGEBLOCK_STATIC_SHARED(float, tree, 32);
  const Index K = views.K, i = threadIdx.x, column = blockIdx.x;
  const Index j = column % views.V, bh = column / views.V, h = bh % views.H, b = bh / views.H;
  const bool has_row = i < K;
  constexpr unsigned all = 0xffffffffU;

  float state = 0;
  if (has_row) state = load_initial_state(tensors, views, b, h, i, j);
  for (Index t = 0; t < views.T; ++t) {
    const float gate = tensors.gate[views.gate.at(b, t, h)];
    const float beta = tensors.beta[views.beta.at(b, t, h)];
    const float v = tensors.v[views.v.at(b, t, h, j)];
    float product = 0;
    if (has_row) {
      float k = 0;
      if (fault == Fault::sixteen_bytes_anywhere && K % 4 == 0) {
        const float4 four = simt::load_vector<float4>(tensors.k, views.k.at(b, t, h, i / 4 * 4));
        k = i % 4 == 0 ? four.x : i % 4 == 1 ? four.y : i % 4 == 2 ? four.z : four.w;
      } else {
        k = tensors.k[views.k.at(b, t, h, i)];
      }
      const float q = tensors.q[views.q.at(b, t, h, i)];
      state = fmaf(gate, state, (beta * k) * v);
      product = q * state;
    }
    const Index at = views.y.at(b, t, h, j);
    if (fault == Fault::atomic_sum) {
      if (i == 0) tensors.y[at] = 0.0F;
      __syncwarp();
      if (has_row) atomicAdd(&tensors.y[at], product);
      continue;
    }
    if (fault == Fault::no_syncwarp_in_tree) {
      tree[i] = product;
      for (int offset = 16; offset > 0; offset /= 2)
        if (i < offset) {
          const float mine = tree[i];
          const float other = tree[i + offset];
          tree[i] = mine + other;
        }
      const float sum = tree[0];
      if (i == 0) tensors.y[at] = sum;
      __syncwarp();
      continue;
    }
    unsigned mask = all;
    if (fault == Fault::half_a_warp_named) mask = 0x0000ffffU;
    if (fault == Fault::only_rows_named && K < 32) mask = (1U << K) - 1;
    const bool takes_part =
        has_row || !(fault == Fault::shuffle_in_a_branch || fault == Fault::only_rows_named);
    if (takes_part)
      for (int offset = fault == Fault::half_a_warp_added ? 8 : 16; offset > 0; offset /= 2)
        product += __shfl_xor_sync(mask, product, offset);
    if (fault == Fault::every_lane_writes || i == 0) tensors.y[at] = product;
  }
  if (has_row) tensors.final_state[views.final_state.at(b, h, i, j)] = state;
}

void run_warp(const RecurrenceArguments& arguments, LaunchContext& context, Fault fault) {
  const RecurrenceViews views = views_of(arguments);
  launch(GAUGEBLOCK_KERNEL(warp_kernel), grid_of(views.B * views.H * views.V), dim3(32), 0, context, views,
         fault);
}

// ---- an axial pass, a block per sequence

__global__ void axial_kernel(AxialPass pass, Fault fault) {
  const PassTensors tensors(pass);
  GAUGEBLOCK_DYNAMIC_SHARED(float, shared);
  const int L = static_cast<int>(pass.L), D = static_cast<int>(pass.D), heads = static_cast<int>(pass.heads);
  const int d = D / heads;
  const BlockSequence sequence = block_sequence(pass);
  const auto n = shared.slice(0, L * D);  // x, then n
  const auto q = shared.slice(L * D, L * D);
  const auto k = shared.slice(2 * L * D, L * D);
  const auto v = shared.slice(3 * L * D, L * D);
  // Its own memory where the fault is that nothing is written to it before sums are added up there.
  const auto o = fault == Fault::output_not_zeroed ? shared.slice(4 * L * D, L * D) : n;

  load_sequence(pass, tensors, sequence, n);
  if (fault != Fault::no_barrier_after_load) __syncthreads();
  normalize_sequence(pass, tensors, n);
  if (fault != Fault::no_barrier_after_norm) __syncthreads();
  project_qkv(pass, tensors, n, q, k, v);
  if (fault != Fault::no_barrier_after_projection) __syncthreads();

  const float scale = logit_scale(d);
  const int keys = fault == Fault::keys_read_in_eights ? (L + 7) / 8 * 8 : L;
  for (int at = static_cast<int>(threadIdx.x); at < heads * L; at += static_cast<int>(blockDim.x)) {
    const int query = at % L, first = at / L * d;  // channel of the head
    const auto q_head = q + (query * D + first);
    const auto o_head = o + (query * D + first);
    float largest = -INFINITY;
    for (int key = 0; key < keys; ++key) {
      const float z = logit(q_head, k + (key * D + first), d, scale);
      if (key < L) largest = fmaxf(largest, z);
    }
    float sum = 0;
    for (int i = 0; i < d && fault != Fault::output_not_zeroed; ++i) o_head[i] = 0;
    for (int key = 0; key < L; ++key) {
      const float weight = expf(logit(q_head, k + (key * D + first), d, scale) - largest);
      sum += weight;
      for (int i = 0; i < d; ++i) {
        const float v_key = v[key * D + first + i];
        const float weighted = o_head[i];
        o_head[i] = fmaf(weight, v_key, weighted);
      }
    }
    for (int i = 0; i < d; ++i) {
      const float weighted = o_head[i];
      o_head[i] = weighted / sum;
    }
    if (fault == Fault::barrier_in_ragged_loop) __syncthreads();
  }
  if (fault != Fault::no_barrier_before_output && fault != Fault::barrier_in_ragged_loop) __syncthreads();
  project_out(pass, tensors, sequence, o);
}

void run_axial(const AxialArguments& arguments, LaunchContext& context, Fault fault) {
  run_passes(arguments, context, [&](const AxialPass& pass, bool) {
    const Index floats = (fault == Fault::output_not_zeroed ? 5 : 4) * pass.L * pass.D;
    if (fault == Fault::padded_tile_without_opt_in) {  // tokens padded to 64 channels
      const Index padded = 4 * pass.L * ceil_div(pass.D, 64) * 64;
      return launch_unchecked(axial_kernel, pass.sequences(), 64, padded, context, pass, fault);
    }
    launch(GAUGEBLOCK_KERNEL(axial_kernel), grid_of(pass.sequences()), dim3(64), floats_bytes(floats),
           context, pass, fault);
  });
}

// ---- as mutants

using Run = std::function<void(const DeviceTensors&, LaunchContext&)>;

/// The launch as a GPU would let it pass: nothing is reported, memory that nothing wrote stays what it was.
void run_unwatched(const Run& run, const Problem& problem, Outputs& outputs) {
  const DeviceTensors tensors(simt_device(), problem, outputs);
  LaunchContext context(simt_device());
  context.simt.tracking = false;
  try {
    run(tensors, context);
  } catch (const DeviceError&) {  // ended early: what is there is returned
  }
  try {
    tensors.finish(outputs);
  } catch (const RunPropertyBroken&) {
  }
}

struct Row {
  Fault fault;
  std::string id;
  Kind kind;
  std::string summary;
  std::string seen;
  std::string needs;
  bool hides = false;
};

constexpr bool hides = true;

/// `run(tensors, context, fault)` launches the kernel.
template <class LaunchWith>
Mutant kernel_mutant(Operation operation, const Row& row, const LaunchWith& launch_with,
                     std::function<std::optional<std::string>(const Problem&)> declines) {
  const auto with = [launch_with](Fault fault) -> Run {
    return [launch_with, fault](const DeviceTensors& tensors, LaunchContext& context) {
      launch_with(tensors, context, fault);
    };
  };
  const auto interpreted = [run = with(row.fault)](simt::Schedule schedule) {
    return [run, schedule](const Problem& problem, Outputs& outputs) {
      run_on_device(simt_device(), {schedule, 1, true}, problem, outputs, run);
    };
  };
  Mutant mutant =
      form_mutant(operation, operation == Operation::axial ? "unfused" : "sequential", row.id, row.kind,
                  row.summary, row.seen, row.needs, row.hides, interpreted(simt::Schedule::in_order));
  mutant.variant.backend = "simt";
  mutant.variant.run_again = {{interpreted(simt::Schedule::reversed), "the same run in reversed order"},
                              {interpreted(simt::Schedule::random), "the same run in random order"}};
  mutant.variant.declines = std::move(declines);
  // A fault of synchronisation, memory that nothing wrote, or a read beside a tensor shows on a GPU now and
  // then, if at all: a check of outputs is given the outputs that the kernel has without it.
  const bool is_sporadic = row.kind == Kind::synchronisation || row.kind == Kind::unwritten ||
                           row.fault == Fault::gate_read_ahead || row.fault == Fault::v_read_in_fours ||
                           row.fault == Fault::keys_read_in_eights;
  mutant.unwatched = [run = with(is_sporadic ? Fault::none : row.fault)](
                         const Problem& problem, Outputs& outputs) { run_unwatched(run, problem, outputs); };
  return mutant;
}

}  // namespace

std::vector<Mutant> kernel_mutants() {
  const std::vector<Row> block_rows{
      {Fault::no_barrier_after_staging, "no_barrier_after_staging", Kind::synchronisation,
       "staged inputs are used without a barrier after they were brought", "ggml-org/llama.cpp#24360",
       "T >= 1, K·V > 1", hides},
      {Fault::no_barrier_before_reading, "no_barrier_before_reading", Kind::synchronisation,
       "the state is contracted without a barrier after its update", "ggml-org/llama.cpp#24360",
       "T >= 1, K·V > V", hides},
      {Fault::no_barrier_before_restaging, "no_barrier_before_restaging", Kind::synchronisation,
       "the next step overwrites staged inputs that others still read", "ggml-org/llama.cpp#24360",
       "T >= 2, V >= 2", hides},
      {Fault::barrier_for_some_threads, "barrier_for_some_threads", Kind::synchronisation,
       "only threads with a column come to a barrier", "uzh-rpg/vilib#5", "T >= 1, V < 64", hides},
      {Fault::result_over_staged_q, "result_over_staged_q", Kind::synchronisation,
       "results are put where staged q lies, which others still read", "operator", "T >= 1, V >= 2", hides},
      {Fault::state_not_zeroed, "state_not_zeroed", Kind::unwritten,
       "without an initial state the state in shared memory is not set to 0", "operator",
       "no initial state, T >= 1", hides},
      {Fault::padded_lane_not_written, "padded_lane_not_written", Kind::unwritten,
       "the sum goes in twos and takes 0 times a word nothing wrote", "fla-org/flash-linear-attention#1134",
       "K odd", hides},
      {Fault::gate_read_ahead, "gate_read_ahead", Kind::indexing, "the gate is read one step behind the end",
       "fla-org/flash-linear-attention (simple_gla, parallel)", "T >= 1", hides},
      {Fault::v_read_in_fours, "v_read_in_fours", Kind::indexing,
       "v is read in fours, past the end of its last row", "fla-org/flash-linear-attention#1134",
       "V % 4 != 0", hides},
      {Fault::y_written_in_fours, "y_written_in_fours", Kind::indexing,
       "y is written in fours, into the row behind", "fla-org/flash-linear-attention#1134", "V % 4 != 0",
       hides},
      {Fault::pairs_rounded_down, "pairs_rounded_down", Kind::last_element,
       "sequences go in pairs: the last of an odd number is never computed", "operator", "B·H odd, B·H >= 3",
       hides},
      {Fault::shared_without_opt_in, "shared_without_opt_in", Kind::silent_launch,
       "more than 48 KB of shared memory without the opt-in: nothing runs", "punica-ai/punica#20",
       "K·V + (T + 1)·(2·K + V) >= 12288", hides},
      {Fault::thread_per_element, "thread_per_element", Kind::silent_launch,
       "a thread per element of the state: nothing runs when there are more than 1024",
       "pytorch/pytorch#91758", "K·V > 1024", hides},
      {Fault::grid_per_step, "grid_per_step", Kind::silent_launch,
       "the grid has no blocks when there are no steps: nothing runs", "aqlaboratory/openfold#468", "T = 0",
       hides},
  };
  const std::vector<Row> warp_rows{
      {Fault::shuffle_in_a_branch, "shuffle_in_a_branch", Kind::synchronisation,
       "lanes without a row do not come to a shuffle that names them", "NVIDIA/cub#154", "K < 32", hides},
      {Fault::half_a_warp_named, "half_a_warp_named", Kind::synchronisation,
       "the mask names 16 lanes, and 32 shuffle", "NVIDIA/cub#154", "T >= 1", hides},
      {Fault::only_rows_named, "only_rows_named", Kind::synchronisation,
       "the mask names the lanes with a row, and these read others", "uzh-rpg/vilib#5", "K < 32", hides},
      {Fault::half_a_warp_added, "half_a_warp_added", Kind::last_element,
       "the shuffles begin at a distance of 8: 16 of 32 products are added", "operator", "K > 16"},
      {Fault::every_lane_writes, "every_lane_writes", Kind::synchronisation,
       "all lanes write the sum to the same place", "operator", "T >= 1", hides},
      {Fault::no_syncwarp_in_tree, "no_syncwarp_in_tree", Kind::synchronisation,
       "a tree in shared memory relies on lanes that run in step", "ggml-org/llama.cpp#24360", "T >= 1",
       hides},
      {Fault::atomic_sum, "atomic_sum", Kind::nondeterministic,
       "products are added by atomics, in the order the lanes come", "fla-org/flash-linear-attention#945",
       "K >= 3", hides},
      {Fault::sixteen_bytes_anywhere, "sixteen_bytes_anywhere", Kind::axis,
       "k is read 16 bytes at a time wherever its rows begin", "lightseekorg/tokenspeed#683",
       "K % 4 = 0, a row that is not aligned", hides},
  };
  const std::vector<Row> axial_rows{
      {Fault::no_barrier_after_load, "no_barrier_after_load", Kind::synchronisation,
       "tokens are normalised without a barrier after they were brought", "operator", "D >= 2", hides},
      {Fault::no_barrier_after_norm, "no_barrier_after_norm", Kind::synchronisation,
       "tokens are projected without a barrier after they were normalised", "operator", "D >= 2", hides},
      {Fault::no_barrier_after_projection, "no_barrier_after_projection", Kind::synchronisation,
       "q, k and v are used without a barrier after they were made", "operator", "L·D >= 2", hides},
      {Fault::no_barrier_before_output, "no_barrier_before_output", Kind::synchronisation,
       "heads are projected without a barrier after they were made", "operator", "L·D >= 2", hides},
      {Fault::barrier_in_ragged_loop, "barrier_in_ragged_loop", Kind::synchronisation,
       "a barrier in a loop that threads leave at different rounds", "uzh-rpg/vilib#5", "heads·L % 64 != 0",
       hides},
      {Fault::output_not_zeroed, "output_not_zeroed", Kind::unwritten,
       "sums over the keys begin with what lies in shared memory", "operator", "L >= 1", hides},
      {Fault::keys_read_in_eights, "keys_read_in_eights", Kind::indexing,
       "keys are read in eights, past the end of the sequence", "woct0rdho/SageAttention#98", "L % 8 != 0",
       hides},
      {Fault::padded_tile_without_opt_in, "padded_tile_without_opt_in", Kind::silent_launch,
       "tokens padded to 64 channels need more than 48 KB without the opt-in: nothing runs",
       "punica-ai/punica#20", "L > 48", hides},
  };
  std::vector<Mutant> mutants;
  const auto any = [](const Problem&) { return std::optional<std::string>(); };
  for (const Row& row : block_rows)
    mutants.push_back(kernel_mutant(
        Operation::recurrence, row,
        [](const DeviceTensors& tensors, LaunchContext& context, Fault fault) {
          run_block(gaugeblock::recurrence_arguments(tensors), context, fault);
        },
        any));
  for (const Row& row : warp_rows)
    mutants.push_back(kernel_mutant(
        Operation::recurrence, row,
        [](const DeviceTensors& tensors, LaunchContext& context, Fault fault) {
          run_warp(gaugeblock::recurrence_arguments(tensors), context, fault);
        },
        [](const Problem& problem) -> std::optional<std::string> {
          if (problem.input("k").shape[3] > 32) return "K > 32: a lane a row, and a warp has 32";
          return std::nullopt;
        }));
  for (const Row& row : axial_rows)
    mutants.push_back(kernel_mutant(
        Operation::axial, row,
        [](const DeviceTensors& tensors, LaunchContext& context, Fault fault) {
          run_axial(gaugeblock::axial_arguments(tensors), context, fault);
        },
        any));
  return mutants;
}

}  // namespace gaugeblock
