// Prints what the functions behind the claims return: for each line "<kind> <id> <arguments>" of the input,
// one line of values, or "unknown". check_binding.py compares them with the values of the theorems.
#include <cmath>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "gaugeblock/verify/bounds/axial_claims.h"
#include "gaugeblock/verify/bounds/claims.h"

namespace {

namespace claims = gaugeblock::claims;
using Arguments = std::vector<double>;
using Values = std::vector<double>;

gaugeblock::Index index(double x) {
  return static_cast<gaugeblock::Index>(x);
}
Values of(const claims::RoundingCount& count) {
  return {count.per_age, count.fixed};
}

const std::map<std::string, std::function<Values(const Arguments&)>> functions = {
    {"recurrence.sequential.output",
     [](const Arguments& a) { return of(claims::sequential_output(index(a[0]), index(a[1]))); }},
    {"recurrence.sequential.state",
     [](const Arguments& a) { return of(claims::sequential_state(index(a[0]))); }},
    {"recurrence.masked_attention.output",
     [](const Arguments& a) { return of(claims::masked_attention_output(index(a[0]), index(a[1]))); }},
    {"recurrence.masked_attention.state",
     [](const Arguments& a) { return of(claims::masked_attention_state(index(a[0]))); }},
    {"recurrence.chunked.output",
     [](const Arguments& a) { return of(claims::chunked_output(index(a[0]), index(a[1]), index(a[2]))); }},
    {"recurrence.chunked.state",
     [](const Arguments& a) { return of(claims::chunked_state(index(a[0]), index(a[1]))); }},
    {"recurrence.scan.output",
     [](const Arguments& a) { return of(claims::scan_output(index(a[0]), index(a[1]))); }},
    {"recurrence.scan.state", [](const Arguments& a) { return of(claims::scan_state(index(a[0]))); }},
    {"recurrence.prefix_product.output",
     [](const Arguments& a) { return of(claims::prefix_product_output(index(a[0]), index(a[1]))); }},
    {"recurrence.prefix_product.state",
     [](const Arguments& a) { return of(claims::prefix_product_state(index(a[0]))); }},
    {"recurrence.any_form.output",
     [](const Arguments& a) { return of(claims::any_form_output(index(a[0]), index(a[1]))); }},
    {"recurrence.any_form.state", [](const Arguments& a) { return of(claims::any_form_state(index(a[0]))); }},
    {"recurrence.underflow",
     [](const Arguments& a) {
       return Values{claims::underflow_amount(index(a[0]), index(a[1]), a[2], a[3], a[4], a[5])};
     }},
    {"mean_roundings", [](const Arguments& a) { return Values{claims::mean_roundings(a[0])}; }},
    {"mean_square_roundings", [](const Arguments& a) { return Values{claims::mean_square_roundings(a[0])}; }},
    {"variance_roundings", [](const Arguments& a) { return Values{claims::variance_roundings(a[0])}; }},
    {"root_roundings", [](const Arguments&) { return Values{claims::root_roundings}; }},
    {"normalize_roundings", [](const Arguments&) { return Values{claims::normalize_roundings}; }},
    {"folded_roundings", [](const Arguments&) { return Values{claims::folded_roundings}; }},
    {"linear_roundings", [](const Arguments& a) { return Values{claims::linear_roundings(a[0])}; }},
    {"linear_with_bias_roundings",
     [](const Arguments& a) { return Values{claims::linear_with_bias_roundings(a[0])}; }},
    {"logit_roundings", [](const Arguments& a) { return Values{claims::logit_roundings(a[0])}; }},
    {"numerator_roundings",
     [](const Arguments& a) { return Values{claims::numerator_roundings(a[0], a[1])}; }},
    {"quotient_roundings", [](const Arguments& a) { return Values{claims::quotient_roundings(a[0], a[1])}; }},
    {"quotient_lost", [](const Arguments& a) { return Values{claims::quotient_lost(a[0], a[1], a[2])}; }},
    {"gamma", [](const Arguments& a) { return Values{claims::gamma(a[0])}; }},
};

}  // namespace

int main() {
  for (std::string text; std::getline(std::cin, text);) {
    std::istringstream words(text);
    std::string kind;
    std::string id;
    words >> kind >> id;
    Arguments arguments;
    for (double x = 0; words >> x;) arguments.push_back(x);
    const auto found = functions.find(id);
    if (found == functions.end() || kind == "bound") {
      std::puts("unknown");
      continue;
    }
    for (const double value : found->second(arguments)) std::printf("%.17g ", value);
    std::puts("");
  }
}
