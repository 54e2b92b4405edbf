// Each rule of the format, broken by itself: refused with a line that says where.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <variant>
#include <vector>

#include "gaugeblock/verify/files/safetensors.h"
#include "safetensors_bytes.h"

namespace gaugeblock {
namespace {

using test::file_bytes;
using test::parse;
using test::refusal_of;

/// The header of one tensor "x" with these fields.
std::string header_of(const std::string& fields) {
  return R"({"x":{)" + fields + "}}";
}

TEST(SafetensorsRead, TakesEveryLegalForm) {
  EXPECT_TRUE(parse(file_bytes("{}", 0)).tensors.empty());
  EXPECT_TRUE(parse(file_bytes("{}      ", 0)).tensors.empty());

  const auto scalar = parse(file_bytes(header_of(R"("shape":[],"data_offsets":[0,4],"dtype":"F32")"), 4));
  EXPECT_EQ(scalar.tensors.at("x").shape, std::vector<Index>{});
  EXPECT_EQ(std::get<std::vector<float>>(scalar.tensors.at("x").values), std::vector<float>{0});

  const auto empty = parse(file_bytes(
      R"({"a":{"dtype":"F64","shape":[0,7],"data_offsets":[4,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
      R"("c":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})",
      4));
  EXPECT_EQ(empty.tensors.size(), 3U);
  EXPECT_TRUE(std::get<std::vector<double>>(empty.tensors.at("a").values).empty());

  const auto metadata = parse(file_bytes(R"({"__metadata__":{"k\u00e4y":"va\"lue","":""}})", 0)).metadata;
  EXPECT_EQ(metadata, (std::map<std::string, std::string>{{"k\xc3\xa4y", "va\"lue"}, {"", ""}}));
}

TEST(SafetensorsRead, KeepsEveryBit) {
  const std::vector<std::uint32_t> bits{0x80000000U, 0x7fc5a5a5U, 0xff800000U, 1U};
  auto bytes = file_bytes(header_of(R"("dtype":"F32","shape":[4],"data_offsets":[0,16])"), 16);
  std::memcpy(bytes.data() + bytes.size() - 16, bits.data(), 16);
  const auto file = parse(bytes);
  const auto& values = std::get<std::vector<float>>(file.tensors.at("x").values);
  EXPECT_EQ(std::memcmp(values.data(), bits.data(), 16), 0);
}

TEST(SafetensorsRead, TakesAHeaderPaddedToItsLimit) {
  EXPECT_TRUE(parse(file_bytes("{}" + std::string(99'999'998, ' '), 0)).tensors.empty());
}

struct Broken {
  std::string fault;
  std::string bytes;
  std::string message;  // a part of it
};

void PrintTo(const Broken& broken, std::ostream* out) {
  *out << broken.fault;
}

class SafetensorsRefusal : public testing::TestWithParam<Broken> {};

TEST_P(SafetensorsRefusal, NamesThePlace) {
  const std::string message = refusal_of(GetParam().bytes);
  EXPECT_EQ(message.substr(0, 6), "file: ") << message;
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
}

const std::string good = R"("dtype":"F32","shape":[1],"data_offsets":[0,4])";
const std::string deep(100'000, '[');

INSTANTIATE_TEST_SUITE_P(
    Length, SafetensorsRefusal,
    testing::Values(
        Broken{"Empty", "", "expected 8 bytes with the length of the header; found a file of 0 bytes"},
        Broken{"SevenBytes", "\1\0\0\0\0\0\0", "found a file of"},
        Broken{"NoHeader", file_bytes("", 0), "expected it to begin with \"{\"; found a header of 0 bytes"},
        Broken{"PastTheEnd", file_bytes("{}", 0, 3), "at most the 2 bytes that follow it; found 3"},
        Broken{"ClaimsTheLimit", file_bytes("{}", 0, 100'000'000), "found 100000000"},
        Broken{"OverTheLimit", file_bytes("{}", 0, 100'000'001), "at most 100000000 bytes; found 100000001"},
        Broken{"AllOnes", std::string(8, '\xff') + "{}", "found 18446744073709551615"}),
    [](const auto& info) { return info.param.fault; });

INSTANTIATE_TEST_SUITE_P(
    Json, SafetensorsRefusal,
    testing::Values(
        Broken{"LeadingSpace", file_bytes(" {}", 0), "begin with \"{\"; found \" \""},
        Broken{"ByteOrderMark", file_bytes("\xef\xbb\xbf{}", 0), "begin with \"{\"; found \"\\xef\""},
        Broken{"Unfinished", file_bytes(R"({"x":{)", 0), "expected valid JSON; found its end"},
        Broken{"Trailing", file_bytes("{}}", 0), "expected valid JSON; found"},
        Broken{"TrailingComma", file_bytes(header_of(good + ","), 4), "expected valid JSON; found"},
        Broken{"Comment", file_bytes("{/**/}", 0), "expected valid JSON; found"},
        Broken{"ZeroBytePadding", file_bytes(std::string("{}\0\0", 4), 0), "found a byte of value 0"},
        Broken{"InvalidUtf8", file_bytes("{\"\xff\xfe\":1}", 0), "expected valid JSON; found \"\\\"\\xff\""},
        Broken{"LoneSurrogate", file_bytes(R"({"\ud800":1})", 0), "expected valid JSON; found"},
        Broken{"NewlineInName", file_bytes("{\"a\nb\":1}", 0), "expected valid JSON; found"},
        Broken{"EscapedNewlineInName", file_bytes(R"({"a\nb":1})", 0),
               "tensor \"a\\x0ab\": expected an object"},
        Broken{"NaN", file_bytes(R"({"x":NaN})", 0), "expected valid JSON; found"},
        Broken{"DeepArrays", file_bytes(R"({"x":)" + deep, 0), "tensor \"x\": expected an object"},
        Broken{"DeepObjects", file_bytes(R"({"x":{"shape":{"a":{"a":{}}}}})", 0),
               "tensor \"x\": shape: expected an array"},
        Broken{"DeepInShape", file_bytes(R"({"x":{"shape":)" + deep, 0),
               "tensor \"x\": shape: expected whole numbers"},
        Broken{"LongToken", file_bytes("{\"" + std::string(2 << 20, 'a') + "\":1}", 0),
               "found one longer than"},
        Broken{"LongNumber", file_bytes(R"({"x":)" + std::string(2 << 20, '1') + "}", 0),
               "found one longer than"}),
    [](const auto& info) { return info.param.fault; });

INSTANTIATE_TEST_SUITE_P(
    Metadata, SafetensorsRefusal,
    testing::Values(Broken{"Null", file_bytes(R"({"__metadata__":null})", 0),
                           "__metadata__: expected an object of strings; found null"},
                    Broken{"Number", file_bytes(R"({"__metadata__":{"a":1}})", 0),
                           "metadata \"a\": expected a string; found 1"},
                    Broken{"Object", file_bytes(R"({"__metadata__":{"a":{}}})", 0),
                           "metadata \"a\": expected a string; found an object"},
                    Broken{"KeyTwice", file_bytes(R"({"__metadata__":{"a":"1","a":"1"}})", 0),
                           "metadata \"a\": expected it once"},
                    Broken{"Twice", file_bytes(R"({"__metadata__":{},"__metadata__":{}})", 0),
                           "__metadata__: expected it once"}),
    [](const auto& info) { return info.param.fault; });

INSTANTIATE_TEST_SUITE_P(
    Tensor, SafetensorsRefusal,
    testing::Values(
        Broken{"Number", file_bytes(R"({"x":1})", 0),
               "tensor \"x\": expected an object with dtype, shape and data_offsets; found 1"},
        Broken{"Twice", file_bytes(R"({"x":{)" + good + R"(},"x":{)" + good + "}}", 4),
               "tensor \"x\": expected it once; found it twice"},
        Broken{"FieldTwice", file_bytes(header_of(good + R"(,"dtype":"F32")"), 4),
               "tensor \"x\": dtype: expected it once"},
        Broken{"UnknownField", file_bytes(header_of(good + R"(,"stride":[1])"), 4),
               "tensor \"x\": \"stride\": expected only dtype"},
        Broken{"NoDtype", file_bytes(header_of(R"("shape":[1],"data_offsets":[0,4])"), 4),
               "tensor \"x\": expected a dtype"},
        Broken{"NoShape", file_bytes(header_of(R"("dtype":"F32","data_offsets":[0,4])"), 4),
               "tensor \"x\": expected a shape"},
        Broken{"NoOffsets", file_bytes(header_of(R"("dtype":"F32","shape":[1])"), 4),
               "tensor \"x\": expected data_offsets"},
        Broken{"Half", file_bytes(header_of(R"("dtype":"F16","shape":[2],"data_offsets":[0,4])"), 4),
               "found \"F16\""},
        Broken{"LowerCase", file_bytes(header_of(R"("dtype":"f32","shape":[1],"data_offsets":[0,4])"), 4),
               "found \"f32\""},
        Broken{"DtypeNumber", file_bytes(header_of(R"("dtype":32,"shape":[1],"data_offsets":[0,4])"), 4),
               "tensor \"x\": dtype: expected a string; found 32"},
        Broken{"ShapeNumber", file_bytes(header_of(R"("dtype":"F32","shape":1,"data_offsets":[0,4])"), 4),
               "tensor \"x\": shape: expected an array"},
        Broken{"Negative", file_bytes(header_of(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), 4),
               "tensor \"x\": shape: expected whole numbers from 0 to 2^63-1; found -1"},
        Broken{"Fraction", file_bytes(header_of(R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])"), 4),
               "found 1.0"},
        Broken{"Exponent", file_bytes(header_of(R"("dtype":"F32","shape":[1e0],"data_offsets":[0,4])"), 4),
               "found 1e0"},
        Broken{
            "HugeExtent",
            file_bytes(header_of(R"("dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,4])"), 4),
            "found 9223372036854775808"},
        Broken{
            "HugerExtent",
            file_bytes(header_of(R"("dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,4])"), 4),
            "found 99999999999999999999"},
        Broken{
            "ElementsOverflow",
            file_bytes(header_of(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4])"), 4),
            "expected fewer than 2^63 elements"},
        Broken{
            "BytesOverflow",
            file_bytes(header_of(R"("dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,0])"), 0),
            "expected fewer than 2^64 bytes"},
        Broken{
            "ManyDimensions",
            file_bytes(
                header_of(
                    R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1])"),
                4),
            "at most 32 dimensions"}),
    [](const auto& info) { return info.param.fault; });

INSTANTIATE_TEST_SUITE_P(
    Offsets, SafetensorsRefusal,
    testing::Values(
        Broken{"One", file_bytes(header_of(R"("dtype":"F32","shape":[1],"data_offsets":[0])"), 4),
               "expected two offsets; found 1"},
        Broken{"Three", file_bytes(header_of(R"("dtype":"F32","shape":[1],"data_offsets":[0,4,4])"), 4),
               "expected two offsets; found more"},
        Broken{"Strings", file_bytes(header_of(R"("dtype":"F32","shape":[1],"data_offsets":["0","4"])"), 4),
               "data_offsets: expected whole numbers"},
        Broken{"Reversed", file_bytes(header_of(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])"), 4),
               "expected the first to be at most the second; found [4,0]"},
        Broken{"PastTheEnd", file_bytes(header_of(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])"), 4),
               "within the 4 bytes of data; found [0,8]"},
        Broken{
            "HugePastTheEnd",
            file_bytes(
                header_of(
                    R"("dtype":"F32","shape":[1],"data_offsets":[18446744073709551612,18446744073709551615])"),
                4),
            "within the 4 bytes of data"},
        Broken{"TooShort", file_bytes(header_of(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), 4),
               "expected 8 bytes for F32 [2]; found [0,4]"},
        Broken{"TooLong", file_bytes(header_of(R"("dtype":"F32","shape":[1],"data_offsets":[0,8])"), 8),
               "expected 4 bytes for F32 [1]; found [0,8]"},
        Broken{
            "Gap",
            file_bytes(
                R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
                12),
            "tensor \"b\": data_offsets: expected it to begin at 4; found 8 (a gap)"},
        Broken{"GapInFront", file_bytes(header_of(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])"), 8),
               "expected it to begin at 0; found 4 (a gap)"},
        Broken{
            "Overlap",
            file_bytes(
                R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
                12),
            "tensor \"b\": data_offsets: expected it to begin at 8; found 4 (an overlap)"},
        Broken{
            "Same",
            file_bytes(
                R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                4),
            "(an overlap)"},
        Broken{
            "EmptyInside",
            file_bytes(
                R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}})",
                8),
            "(an overlap)"},
        Broken{"TrailingBytes", file_bytes(header_of(good), 5),
               "data: expected it to end with the last tensor at 4; found 1 bytes more"},
        Broken{"DataWithoutTensors", file_bytes("{}", 1), "found 1 bytes more"}),
    [](const auto& info) { return info.param.fault; });

TEST(SafetensorsRead, RefusesMoreEntriesThanItKeeps) {
  std::string header = "{";
  for (int i = 0; i < 70'000; ++i)
    header.append("\"")
        .append(std::to_string(i))
        .append(R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)");
  header.back() = '}';
  EXPECT_NE(refusal_of(file_bytes(header, 0)).find("at most 65536 tensors and metadata"), std::string::npos);
}

}  // namespace
}  // namespace gaugeblock
