// replay_safetensors FILE: reads one file as `gaugeblock judge` does. Exit: 0 taken; 2 refused, with one line
// on stderr.
#include <cstdio>
#include <exception>

#include "gaugeblock/verify/cases/errors.h"
#include "problem_bytes.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: replay_safetensors FILE\n", stderr);
    return 2;
  }
  try {
    gaugeblock::read_everything(gaugeblock::read_safetensors(argv[1]));
    return 0;
  } catch (const gaugeblock::InputError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
