// What is written is read back bit by bit, is the same on every run, and is never seen half-written.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "gaugeblock/verify/files/safetensors.h"
#include "safetensors_bytes.h"

namespace gaugeblock {
namespace {

using test::parse;
using test::refusal;

/// A folder that goes with the test.
class SafetensorsWrite : public testing::Test {
 protected:
  SafetensorsWrite() {
    std::string name = (std::filesystem::temp_directory_path() / "gaugeblock-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder = name;
  }
  ~SafetensorsWrite() override { std::filesystem::remove_all(folder); }

  std::size_t entries() const {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  }

  std::filesystem::path folder;
};

std::string content(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

SafetensorsFile example() {
  SafetensorsFile file;
  file.name = "example";
  file.metadata = {{"b", "two\n"}, {"a", "\"\xc3\xa4"}};
  file.tensors["y"] = {{2, 2}, std::vector<float>{1, -0.0F, std::numeric_limits<float>::infinity(), 1e-45F}};
  file.tensors["expected.y"] = {{2}, std::vector<double>{0.1, std::numeric_limits<double>::quiet_NaN()}};
  file.tensors["empty"] = {{0, 3}, std::vector<float>{}};
  file.tensors["scalar"] = {{}, std::vector<float>{4}};
  return file;
}

TEST_F(SafetensorsWrite, ReadsBackTheSame) {
  const std::string bytes = print_safetensors(example());
  const SafetensorsFile back = parse(bytes);
  EXPECT_EQ(back.metadata, example().metadata);
  EXPECT_EQ(back.tensors.size(), 4U);
  EXPECT_EQ(back.tensors.at("y"), example().tensors.at("y"));
  EXPECT_EQ(back.tensors.at("empty"), example().tensors.at("empty"));
  EXPECT_EQ(back.tensors.at("scalar"), example().tensors.at("scalar"));
  EXPECT_TRUE(std::isnan(std::get<std::vector<double>>(back.tensors.at("expected.y").values).at(1)));
  EXPECT_EQ(print_safetensors(back), bytes);

  write_safetensors(example(), folder / "file");
  EXPECT_EQ(content(folder / "file"), bytes);
  EXPECT_EQ(print_safetensors(read_safetensors(folder / "file")), bytes);
}

TEST_F(SafetensorsWrite, HasOneForm) {
  SafetensorsFile file;
  file.metadata = {{"k", "v"}};
  file.tensors["b"] = {{1}, std::vector<float>{1}};
  file.tensors["a"] = {{1, 1}, std::vector<float>{2}};
  file.tensors["c"] = {{1}, std::vector<double>{3}};
  const std::string header =
      R"({"__metadata__":{"k":"v"},"c":{"dtype":"F64","shape":[1],"data_offsets":[0,8]},)"
      R"("a":{"dtype":"F32","shape":[1,1],"data_offsets":[8,12]},"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})";
  const std::string bytes = print_safetensors(file);
  EXPECT_EQ(bytes.substr(8, header.size()), header);
  const std::size_t data = bytes.size() - 16;
  EXPECT_EQ(data % 8, 0U);
  EXPECT_EQ(bytes.substr(8 + header.size(), data - 8 - header.size()).find_first_not_of(' '),
            std::string::npos);
  EXPECT_EQ(static_cast<std::size_t>(static_cast<unsigned char>(bytes[0])), data - 8);
}

TEST_F(SafetensorsWrite, RefusesWhatNobodyCouldRead) {
  SafetensorsFile file;
  file.name = "file";
  file.tensors["x"] = {{2}, std::vector<float>{1}};
  EXPECT_EQ(refusal([&] { print_safetensors(file); }),
            "file: tensor \"x\": expected values for [2]; found 1");
  file.tensors.clear();
  file.tensors["\xff"] = {{1}, std::vector<float>{1}};
  EXPECT_EQ(refusal([&] { print_safetensors(file); }),
            "file: expected a name or metadata in UTF-8; found \"\\xff\"");
  file.tensors.clear();
  file.tensors["__metadata__"] = {{1}, std::vector<float>{1}};
  EXPECT_NE(refusal([&] { print_safetensors(file); }), "");
  write_safetensors({}, folder / "kept");
  EXPECT_NE(refusal([&] { write_safetensors(file, folder / "kept"); }), "");
  EXPECT_EQ(content(folder / "kept"), print_safetensors({}));
  EXPECT_EQ(entries(), 1U);
}

TEST_F(SafetensorsWrite, LeavesNothingWhenItFails) {
  const std::string missing = refusal([&] { write_safetensors(example(), folder / "none" / "file"); });
  EXPECT_NE(missing.find("none/file: expected a file that can be written: No such file"), std::string::npos)
      << missing;
  std::filesystem::create_directory(folder / "directory");
  EXPECT_NE(refusal([&] { write_safetensors(example(), folder / "directory"); }).find("directory: expected"),
            std::string::npos);
  EXPECT_EQ(entries(), 1U);
}

TEST_F(SafetensorsWrite, WritesThroughDevicesAndLinks) {
  // A full disk: the device stays a device.
  EXPECT_NE(refusal([&] { write_safetensors(example(), "/dev/full"); }).find("No space left"),
            std::string::npos);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  write_safetensors({}, folder / "target");
  std::filesystem::create_symlink("target", folder / "link");
  write_safetensors(example(), folder / "link");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(content(folder / "target"), print_safetensors(example()));
  EXPECT_EQ(entries(), 2U);
}

TEST_F(SafetensorsWrite, RefusesToReadWhatIsNoFile) {
  EXPECT_NE(
      refusal([&] { read_safetensors(folder / "none"); }).find("none: expected a file; found nothing there"),
      std::string::npos);
  EXPECT_NE(refusal([&] { read_safetensors(folder); }).find("found a directory"), std::string::npos);
  EXPECT_NE(refusal([&] { read_safetensors("/dev/zero"); }).find("found a device or pipe"),
            std::string::npos);
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_NE(refusal([&] { read_safetensors(folder / "pipe"); }).find("found a device or pipe"),
            std::string::npos);
  EXPECT_NE(refusal([&] { read_safetensors(folder / "two\nlines"); }).find("two?lines"), std::string::npos);
}

TEST_F(SafetensorsWrite, RefusesAFileLargerThanTheMemory) {
  // A hole of 2^43 bytes: nothing of it is on the disk, and all of it would have to be in memory.
  const std::string header =
      R"({"x":{"dtype":"F32","shape":[2199023255552],"data_offsets":[0,8796093022208]}})";
  std::ofstream(folder / "holes", std::ios::binary) << test::file_bytes(header, 0);
  std::error_code error;
  std::filesystem::resize_file(folder / "holes", 8 + header.size() + (std::uintmax_t{1} << 43), error);
  if (error) GTEST_SKIP() << "the file system has no files of this size: " << error.message();
  EXPECT_NE(refusal([&] { read_safetensors(folder / "holes"); }).find("of this machine's memory"),
            std::string::npos);
}

}  // namespace
}  // namespace gaugeblock
