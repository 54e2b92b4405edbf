#include "gaugeblock/verify/cases/case.h"

#include <optional>

#include "gaugeblock/verify/cases/case_text.h"
#include "gaugeblock/verify/cases/random.h"

namespace gaugeblock {

Operation operation_of(const Case& c) {
  return std::holds_alternative<RecurrenceCase>(c) ? Operation::recurrence : Operation::axial;
}

Case parse_case(std::string_view text) {
  const CaseText parts = parse_case_text(text);
  if (parse_operation(parts.operation) == Operation::recurrence) return recurrence_case_from(parts);
  return axial_case_from(parts);
}

std::string print_case(const Case& c) {
  return std::visit([](const auto& of_operation) { return print_case_text(case_text(of_operation)); }, c);
}

Problem make_problem(const Case& c) {
  return std::visit([](const auto& of_operation) { return make_problem(of_operation); }, c);
}

std::vector<Case> simpler(const Case& c) {
  return std::visit(
      [](const auto& of_operation) {
        const auto cases = simpler(of_operation);
        return std::vector<Case>(cases.begin(), cases.end());
      },
      c);
}

std::vector<std::pair<std::string, std::string>> families(const Case& c) {
  return std::visit([](const auto& of_operation) { return families(of_operation); }, c);
}

double work(const Case& c) {
  return std::visit([](const auto& of_operation) { return work(of_operation); }, c);
}

Case draw_case(Operation operation, Draw& draw, double largest_work) {
  if (operation == Operation::recurrence) return draw_recurrence_case(draw, largest_work);
  return draw_axial_case(draw, largest_work);
}

Case campaign_case(Operation operation, std::uint64_t seed, std::uint64_t index, double largest_work) {
  Draw draw(seed, index);
  const auto opening = [&](const auto& cases) -> std::optional<Case> {
    if (index >= cases.size()) return std::nullopt;
    auto c = cases[static_cast<std::size_t>(index)];
    c.seed = static_cast<std::uint64_t>(draw.between(1, 999'999));
    return c;
  };
  const std::optional<Case> opened = operation == Operation::recurrence ? opening(opening_recurrence_cases())
                                                                        : opening(opening_axial_cases());
  return opened ? *opened : draw_case(operation, draw, largest_work);
}

std::vector<Case> large_cases(Operation operation) {
  const auto parsed = [](std::initializer_list<const char*> texts) {
    std::vector<Case> cases;
    for (const char* text : texts) cases.push_back(parse_case(text));
    return cases;
  };
  if (operation == Operation::recurrence)
    return parsed({"recurrence:B=1,T=4096,H=1,K=128,V=128,gate=near_one,seed=1",
                   "recurrence:B=65536,T=1,H=1,K=1,V=1,gate=uniform,seed=2",
                   "recurrence:B=256,T=9,H=256,K=4,V=4,gate=uniform,beta=normal,state=writes,seed=3",
                   "recurrence:B=1,T=2048,H=2,K=100,V=60,gate=log_uniform,beta=normal,state=writes,layout="
                   "padded,seed=4",
                   "recurrence:B=1,T=16384,H=1,K=8,V=8,gate=near_one,beta=uniform,seed=5"});
  return parsed({"axial:B=1,H=1,W=256,D=256,heads=8,seed=1", "axial:B=1,H=256,W=1,D=256,heads=2,seed=2",
                 "axial:B=65536,H=1,W=2,D=8,heads=2,seed=3", "axial:B=65,H=32,W=32,D=8,heads=2,seed=4",
                 "axial:B=1,H=64,W=48,D=64,heads=4,seed=5"});
}

}  // namespace gaugeblock
