#include "gaugeblock/verify/cases/arbitrary_case.h"

#include <ostream>

#include "gaugeblock/verify/cases/random.h"

namespace gaugeblock {
namespace {

rc::Seq<rc::Shrinkable<Case>> shrinks_of(const Case& c);

rc::Shrinkable<Case> shrinkable_case(const Case& c) {
  return rc::shrinkable::lambda([c] { return c; }, [c] { return shrinks_of(c); });
}

rc::Seq<rc::Shrinkable<Case>> shrinks_of(const Case& c) {
  return rc::seq::map(rc::seq::fromContainer(simpler(c)),
                      [](const Case& simpler_case) { return shrinkable_case(simpler_case); });
}

}  // namespace

rc::Gen<Case> arbitrary_case(Operation operation, double largest_work) {
  // rapidcheck's own generators of numbers depend on the platform's types; what is drawn here only takes 64
  // bits from its source.
  return [=](const rc::Random& random, int) {
    Draw draw(rc::Random(random).next());
    return shrinkable_case(draw_case(operation, draw, largest_work));
  };
}

void showValue(const Case& c, std::ostream& out) {
  out << "gaugeblock verify --case '" << print_case(c) << "'";
}

}  // namespace gaugeblock
