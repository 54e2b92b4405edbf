#include "planted_faults.h"

#include <atomic>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <utility>

#include "gaugeblock/reference/recurrence/sequential.h"

namespace gaugeblock {
namespace {

using Matrix = recurrence::Matrix<float>;
using Vector = recurrence::Vector<float>;

/// What the sequential form does at one step, open to faults.
struct Step {
  Index b, t, h, T;
  float gate;
  float beta;
  Vector q, k, v;
  const Matrix& before;
};

/// A sequential form whose state update and contraction can be replaced.
struct FaultyForm {
  std::function<Matrix(const Step&)> update = [](const Step& s) -> Matrix {
    return s.gate * s.before + (s.beta * s.k) * s.v.transpose();
  };
  std::function<Vector(const Step&, const Matrix&)> contract =
      [](const Step& s, const Matrix& state) -> Vector { return state.transpose() * s.q; };
  bool takes_initial_state = true;

  void operator()(const RecurrenceProblem& problem, const RecurrenceOutputs<float>& out) const {
    for (Index b = 0; b < problem.batches(); ++b)
      for (Index h = 0; h < problem.heads(); ++h) {
        Matrix state = recurrence::load_initial_state<float>(problem, b, h);
        if (!takes_initial_state) state.setZero();
        for (Index t = 0; t < problem.steps(); ++t) {
          const Matrix before = state;
          const Step step{b,
                          t,
                          h,
                          problem.steps(),
                          problem.gate(b, t, h),
                          problem.beta(b, t, h),
                          recurrence::load<float>(problem.q, b, t, h),
                          recurrence::load<float>(problem.k, b, t, h),
                          recurrence::load<float>(problem.v, b, t, h),
                          before};
          state = update(step);
          recurrence::store_output<float>(out, b, t, h, contract(step, state));
        }
        recurrence::store_final_state<float>(out, b, h, state);
      }
  }
};

/// x rounded to 11 significant bits, as a tensor core takes it in TF32 or float16.
float rounded_to_11_bits(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  return std::bit_cast<float>((bits + 0x1000U) & ~0x1fffU);
}

/// Chunks of `chunk` steps whose state is handed on with one gate too few.
void decay_off_by_one_at_chunk_border(const RecurrenceProblem& problem, const RecurrenceOutputs<float>& out,
                                      Index chunk) {
  FaultyForm form;
  form.update = [chunk](const Step& s) -> Matrix {
    const float gate = s.t > 0 && s.t % chunk == 0 ? 1.0F : s.gate;
    return gate * s.before + (s.beta * s.k) * s.v.transpose();
  };
  form(problem, out);
}

Variant faulty(std::string name, std::string summary,
               std::function<void(const RecurrenceProblem&, const RecurrenceOutputs<float>&)> form) {
  Variant variant;
  variant.operation = Operation::recurrence;
  variant.name = std::move(name);
  variant.backend = "cpu";
  variant.summary = std::move(summary);
  variant.claim = "recurrence.sequential";
  variant.arithmetic.form = "sequential";
  variant.promises = {.prefix = true, .split = true};
  variant.declines = [](const Problem&) { return std::optional<std::string>(); };
  variant.run = [form = std::move(form)](const Problem& problem, Outputs& outputs) {
    form(recurrence_view(problem), recurrence_view(outputs));
  };
  return variant;
}

}  // namespace

std::vector<PlantedFault> recurrence_planted_faults() {
  std::vector<PlantedFault> faults;
  const auto add = [&faults](std::string name, std::string summary, FaultyForm form) {
    faults.push_back({faulty(std::move(name), std::move(summary), std::move(form)), 4, {}});
  };

  FaultyForm form;
  form.update = [](const Step& s) -> Matrix {
    return s.gate * (s.before + (s.beta * s.k) * s.v.transpose());
  };
  add("gate_after_write", "the gate is applied after the write", form);

  form = {};
  form.contract = [](const Step& s, const Matrix& state) -> Vector {
    const Index lanes = s.q.size() - 1;
    return state.topRows(lanes).transpose() * s.q.head(lanes);
  };
  add("last_lane_dropped", "the last of the K products is left out of the sum", form);

  form = {};
  form.contract = [](const Step& s, const Matrix&) -> Vector { return s.before.transpose() * s.q; };
  add("reads_previous_state", "y_t is taken from S_{t-1}", form);

  form = {};
  form.contract = [](const Step& s, const Matrix& state) -> Vector {
    return state.transpose() * s.q.unaryExpr([](float x) { return rounded_to_11_bits(x); });
  };
  add("q_in_11_bits", "q is rounded to 11 bits", form);

  form = {};
  form.update = [](const Step& s) -> Matrix {
    if (s.t == s.T / 2) return s.gate * s.before;
    return s.gate * s.before + (s.beta * s.k) * s.v.transpose();
  };
  add("one_write_lost", "the write of one step is lost", form);

  form = {};
  form.takes_initial_state = false;
  add("state_ignored", "the initial state is taken as zero", form);

  form = {};
  form.update = [](const Step& s) -> Matrix {
    const float gate = s.t == s.T / 2 ? 1.0F : s.gate;
    return gate * s.before + (s.beta * s.k) * s.v.transpose();
  };
  add("one_gate_skipped", "the gate of one step is skipped", form);

  form = {};
  form.contract = [](const Step& s, const Matrix& state) -> Vector {
    Vector y = state.transpose() * s.q;
    if (s.t == s.T - 1) y(y.size() - 1) = std::numeric_limits<float>::quiet_NaN();
    return y;
  };
  add("nan_written", "one element is NaN", form);

  faults.push_back({faulty("chunk_border_decay", "the decay is one gate short at the border of a chunk of 16",
                           [](const RecurrenceProblem& problem, const RecurrenceOutputs<float>& out) {
                             decay_off_by_one_at_chunk_border(problem, out, 16);
                           }),
                    17, "the first border lies behind 16 steps"});

  Variant unwritten = faulty("element_not_written", "the last element of y is never written", {});
  unwritten.run = [](const Problem& problem, Outputs& outputs) {
    Tensor& y = outputs.at("y");
    const float before = y.size() > 0 ? y.buffer[y.position(y.size() - 1)] : 0;
    recurrence::sequential(recurrence_view(problem), recurrence_view(outputs));
    if (y.size() > 0) y.buffer[y.position(y.size() - 1)] = before;
  };
  faults.push_back({std::move(unwritten), 4, {}});

  Variant overwritten = faulty("input_overwritten", "an input is used as scratch memory", {});
  overwritten.run = [](const Problem& problem, Outputs& outputs) {
    recurrence::sequential(recurrence_view(problem), recurrence_view(outputs));
    auto& k = const_cast<Tensor&>(problem.input("k"));  // the fault itself
    if (k.size() > 0) k.buffer[k.position(0)] += 1;
  };
  faults.push_back({std::move(overwritten), 4, {}});

  Variant guard = faulty("writes_behind_output", "one element is written behind the output", {});
  guard.run = [](const Problem& problem, Outputs& outputs) {
    recurrence::sequential(recurrence_view(problem), recurrence_view(outputs));
    Tensor& y = outputs.at("y");
    y.buffer[y.offset + y.size()] = 0;
  };
  faults.push_back({std::move(guard), 4, {}});

  Variant changing =
      faulty("changes_from_run_to_run", "every other run adds the products in another order", {});
  auto runs = std::make_shared<std::atomic<int>>(0);
  changing.run = [runs](const Problem& problem, Outputs& outputs) {
    const RecurrenceOutputs<float> out = recurrence_view(outputs);
    recurrence::sequential(recurrence_view(problem), out);
    if ((*runs)++ % 2 == 0) return;
    for (Index j = 0; j < out.y.shape[3]; ++j)
      for (Index t = 0; t < out.y.shape[1]; ++t)
        out.y(0, t, 0, j) = std::nextafter(out.y(0, t, 0, j), std::numeric_limits<float>::max());
  };
  faults.push_back({std::move(changing), 4, {}});

  return faults;
}

}  // namespace gaugeblock
