// The case text: both ways, and one clear line for everything that is not one.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "gaugeblock/verify/cases/arbitrary_case.h"
#include "gaugeblock/verify/cases/case_text.h"
#include "gaugeblock/verify/cases/errors.h"

namespace gaugeblock {
namespace {

std::string refusal_of(const std::string& text) {
  try {
    parse_case(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "(not refused)";
}

const std::string quoted_size =
    "recurrence:B=2,T=128,H=4,K=24,V=24,gate=near_one,beta=unit,qkv=normal,state=none,layout=contiguous,seed="
    "42";

TEST(CasesText, ReadsEveryKey) {
  RecurrenceCase expected;
  expected.B = 2;
  expected.T = 128;
  expected.H = 4;
  expected.K = 24;
  expected.V = 24;
  expected.gate.family = GateFamily::near_one;
  expected.seed = 42;
  EXPECT_EQ(parse_case(quoted_size), Case(expected));
  EXPECT_EQ(print_case(expected), quoted_size);

  expected = {3,
              0,
              1,
              5,
              7,
              {GateFamily::reset, 4, 0.9F},
              ValueFamily::zero,
              ValueFamily::no_keys,
              StateFamily::writes,
              Layout::broadcast,
              18446744073709551615U};
  EXPECT_EQ(parse_case("recurrence:B=3,T=0,H=1,K=5,V=7,gate=reset:4:0.9,beta=zero,qkv=no_keys,state=writes,"
                       "layout=broadcast,seed=18446744073709551615"),
            Case(expected));
}

TEST(CasesText, KeysComeInAnyOrderAndHaveDefaults) {
  EXPECT_EQ(
      parse_case(
          "recurrence:seed=42,layout=contiguous,state=none,qkv=normal,beta=unit,gate=near_one,V=24,K=24,"
          "H=4,T=128,B=2"),
      parse_case(quoted_size));
  EXPECT_EQ(parse_case("recurrence"), Case(RecurrenceCase()));
  EXPECT_EQ(parse_case("recurrence:"), Case(RecurrenceCase()));
}

TEST(CasesText, EveryFamilyReadsAsItPrints) {
  for (const char* field : {"gate=one",
                            "gate=uniform",
                            "gate=near_one",
                            "gate=const:0.9",
                            "gate=zeros",
                            "gate=reset:4:0.9",
                            "gate=negative",
                            "gate=above_one",
                            "gate=alternating",
                            "gate=tiny",
                            "gate=log_uniform",
                            "gate=subnormal",
                            "beta=unit",
                            "beta=integers",
                            "beta=normal",
                            "beta=uniform",
                            "beta=small",
                            "beta=signed_zeros",
                            "beta=dominant",
                            "beta=large",
                            "beta=zero",
                            "qkv=integers",
                            "qkv=normal",
                            "qkv=uniform",
                            "qkv=small",
                            "qkv=signed_zeros",
                            "qkv=dominant",
                            "qkv=large",
                            "qkv=no_keys",
                            "state=none",
                            "state=writes",
                            "layout=contiguous",
                            "layout=padded",
                            "layout=permuted",
                            "layout=broadcast",
                            "gate=const:-0",
                            "gate=const:1e-45",
                            "gate=const:6.5e-12",
                            "gate=const:3.4028235e+38",
                            "gate=reset:1:-0.5",
                            "seed=0"}) {
    const std::string printed = print_case(parse_case(std::string("recurrence:") + field));
    EXPECT_NE(printed.find(std::string(field) + (printed.ends_with(field) ? "" : ",")), std::string::npos)
        << field << " prints as " << printed;
    EXPECT_EQ(print_case(parse_case(printed)), printed);
  }
}

TEST(CasesText, FloatsPrintAsTheShortestTextThatReadsBack) {
  EXPECT_EQ(float_text(0.1F), "0.1");
  EXPECT_EQ(float_text(1.0F), "1");
  EXPECT_EQ(float_text(6.5e-12F), "6.5e-12");
  for (const float x : {0.1F, 1.0F / 3.0F, 1e-45F, 3.4028235e38F, -7.0F})
    EXPECT_EQ(parse_float(float_text(x), "x"), x);
  EXPECT_EQ(print_case(parse_case("recurrence:gate=const:0.10000000149011612")),
            print_case(parse_case("recurrence:gate=const:1e-1")));
}

TEST(CasesText, EachMistakeIsOneLineThatSaysWhatWasExpectedAndWhatWasFound) {
  const std::string integer = "expected an integer from 1 to 4294967295; found ";
  const std::string keys =
      "key of recurrence: expected one of B, T, H, K, V, gate, beta, qkv, state, layout, seed; found ";
  const std::string gates =
      "gate: expected one of one, uniform, near_one, const:X, zeros, reset:N:X, negative, above_one, "
      "alternating, "
      "tiny, log_uniform, subnormal; found ";
  const std::vector<std::pair<std::string, std::string>> refused{
      {"", "case: expected operation:key=value,...; found ''"},
      {":B=1", "case: expected operation:key=value,...; found ':B=1'"},
      {"recurence:B=1",
       "operation: expected one of recurrence, axial; found 'recurence' (did you mean 'recurrence'?)"},
      {"matmul:B=1", "operation: expected one of recurrence, axial; found 'matmul'"},
      {"recurrence:b=1", keys + "'b' (did you mean 'B'?)"},
      {"recurrence:gat=one", keys + "'gat' (did you mean 'gate'?)"},
      {"recurrence:heads=4", keys + "'heads'"},
      {"recurrence:B", "case: expected key=value; found 'B'"},
      {"recurrence:B=", "case: expected key=value; found 'B='"},
      {"recurrence:=3", "case: expected key=value; found '=3'"},
      {"recurrence:,B=3", "case: expected key=value; found ''"},
      {"recurrence:B=3,,T=1", "case: expected key=value; found ''"},
      {"recurrence:B=3,",
       "case: expected key=value after the last comma; found nothing in 'recurrence:B=3,'"},
      {"recurrence:B=1,T=2,B=1", "case: expected each key once; found 'B' twice, 'B' = '1' and 'B=1'"},
      {"recurrence:" + std::string(60, '\x01') + "=1," + std::string(60, '\x01') + "=2",
       [] {
         std::string spelt;
         for (int byte = 0; byte < 15; ++byte) spelt += "\\x01";
         const std::string key = "'" + spelt + "...'";
         return "case: expected each key once; found " + key + " twice, " + key + " = '1' and " + key;
       }()},
      {"recurrence:B=0", "B: " + integer + "'0', which is out of range"},
      {"recurrence:K=-24", "K: " + integer + "'-24', which is out of range"},
      {"recurrence:V=4294967296", "V: " + integer + "'4294967296', which is out of range"},
      {"recurrence:H=9223372036854775808", "H: " + integer + "'9223372036854775808', which is out of range"},
      {"recurrence:T=-1", "T: expected an integer from 0 to 4294967295; found '-1', which is out of range"},
      {"recurrence:K=24x", "K: " + integer + "'24x'"},
      {"recurrence:K=2.5", "K: " + integer + "'2.5'"},
      {"recurrence:K=+2", "K: " + integer + "'+2'"},
      {"recurrence:K= 2", "K: " + integer + "' 2'"},
      {"recurrence:K=0x10", "K: " + integer + "'0x10'"},
      {"recurrence:K=two\n", "K: " + integer + "'two\\x0a'"},
      {"recurrence:seed=-1", "seed: expected an integer from 0 to 18446744073709551615; found '-1'"},
      {"recurrence:seed=18446744073709551616",
       "seed: expected an integer from 0 to 18446744073709551615; found '18446744073709551616', which is out "
       "of range"},
      {"recurrence:gate=nearone", gates + "'nearone' (did you mean 'near_one'?)"},
      {"recurrence:gate=one:2", gates + "'one:2' (did you mean 'one'?)"},
      {"recurrence:gate=sigmoid", gates + "'sigmoid'"},
      {"recurrence:gate=const",
       "X of gate=const:X: expected a finite number such as 0.9 or 6.5e-12; found ''"},
      {"recurrence:gate=const:abc",
       "X of gate=const:X: expected a finite number such as 0.9 or 6.5e-12; found 'abc'"},
      {"recurrence:gate=const:nan",
       "X of gate=const:X: expected a finite number such as 0.9 or 6.5e-12; found 'nan'"},
      {"recurrence:gate=const:inf",
       "X of gate=const:X: expected a finite number such as 0.9 or 6.5e-12; found 'inf'"},
      {"recurrence:gate=const:1e39",
       "X of gate=const:X: expected a number that float32 can hold; found '1e39', which is out of range"},
      {"recurrence:gate=reset:0:0.9",
       "N of gate=reset:N:X: expected an integer from 1 to 4294967295; found '0', which is out of range"},
      {"recurrence:gate=reset:4",
       "X of gate=reset:N:X: expected a finite number such as 0.9 or 6.5e-12; found ''"},
      {"recurrence:gate=reset:4:0.9:1",
       "X of gate=reset:N:X: expected a finite number such as 0.9 or 6.5e-12; found '0.9:1'"},
      {"recurrence:beta=no_keys",
       "beta: expected one of unit, normal, integers, uniform, small, signed_zeros, dominant, large, zero; "
       "found "
       "'no_keys'"},
      {"recurrence:qkv=Normal",
       "qkv: expected one of normal, integers, uniform, small, signed_zeros, dominant, large, no_keys; found "
       "'Normal' "
       "(did you mean 'normal'?)"},
      {"recurrence:state=some", "state: expected one of none, writes; found 'some' (did you mean 'none'?)"},
      {"recurrence:layout=padd",
       "layout: expected one of contiguous, padded, permuted, broadcast; found 'padd' (did you mean "
       "'padded'?)"},
  };
  for (const auto& [text, line] : refused) {
    EXPECT_EQ(refusal_of(text), line) << text;
    EXPECT_EQ(refusal_of(text).find('\n'), std::string::npos);
  }
}

TEST(CasesText, LongMistakesAreCutShort) {
  EXPECT_LT(refusal_of("recurrence:K=" + std::string(5000, '9')).size(), 200U);
  EXPECT_LT(refusal_of(std::string(5000, 'x')).size(), 200U);
}

TEST(CasesText, SizesBeyondMemoryAreRefused) {
  for (const char* text :
       {"recurrence:B=4294967295,T=4294967295,H=4294967295,K=4294967295,V=4294967295",
        "recurrence:T=4294967295,K=100000", "recurrence:H=4294967295,K=4096,V=4096,T=0,layout=padded",
        "recurrence:B=4294967295,T=4294967295,K=2147483648,V=1,layout=broadcast"}) {
    try {
      make_problem(parse_case(text));
      ADD_FAILURE() << text << " was not refused";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("expected"), std::string::npos);
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

TEST(CasesText, CounterexamplesPrintAsTheCommandThatRepeatsThem) {
  EXPECT_EQ(rc::toString(Case(parse_case(quoted_size))), "gaugeblock verify --case '" + quoted_size + "'");
}

}  // namespace
}  // namespace gaugeblock
