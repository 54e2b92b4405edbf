# cmake -DSOURCE=<project> -DCUDA_COMPILER=<text> -DOUTPUT=<file> -P kernel_records.cmake
#
# Writes what verify/variants/last_seen.cpp includes: the CUDA compiler, the digest of every GPU variant's source as it is
# now, and what data/device says of the last run of each on a GPU.
#
# The digest is the SHA-256 of what `sha256sum` prints of the source, of the project's headers that it includes, at any
# depth, and of the kernels that such a header declares (those of copy.h are in copy.cu), sorted by path: one line
# "HASH  PATH" a file. Left out are gpu/simt/host_kernel.h, which nvcc never reads, and the lists of all kernels.
cmake_minimum_required(VERSION 3.25)

function(digest_of source result)
  set(todo ${source})
  set(paths)
  while(todo)
    list(POP_FRONT todo path)
    if(path IN_LIST paths OR path STREQUAL "gpu/simt/host_kernel.h" OR path MATCHES "/kernels\\.cu$")
      continue()
    endif()
    list(APPEND paths ${path})
    string(REGEX REPLACE "\\.h$" ".cu" kernels ${path})
    if(EXISTS ${SOURCE}/${kernels})
      list(APPEND todo ${kernels})
    endif()
    file(STRINGS ${SOURCE}/${path} includes REGEX "^#include \"gaugeblock/")
    foreach(line IN LISTS includes)
      string(REGEX REPLACE "^#include \"gaugeblock/([^\"]+)\".*" "\\1" included "${line}")
      list(APPEND todo ${included})
    endforeach()
  endwhile()
  list(SORT paths)
  set(text "")
  foreach(path IN LISTS paths)
    file(SHA256 ${SOURCE}/${path} hash)
    string(APPEND text "${hash}  ${path}\n")
  endforeach()
  string(SHA256 digest "${text}")
  set(${result} ${digest} PARENT_SCOPE)
endfunction()

set(digests "")
foreach(op recurrence axial)
  file(GLOB sources RELATIVE ${SOURCE} ${SOURCE}/gpu/${op}/*.cu)
  foreach(source IN LISTS sources)
    # A file that defines variants says `RecurrenceKernel name() {` or `AxialKernel name() {` of each.
    file(STRINGS ${SOURCE}/${source} definitions REGEX "^(Recurrence|Axial)Kernel [a-z0-9_]+\\(\\) {")
    if(NOT definitions)
      continue()
    endif()
    digest_of(${source} digest)
    foreach(line IN LISTS definitions)
      string(REGEX REPLACE "^[A-Za-z]+ ([a-z0-9_]+)\\(\\).*" "\\1" name "${line}")
      string(APPEND digests "    {\"${op}\", \"${name}\", \"${digest}\"},\n")
    endforeach()
  endforeach()
endforeach()

set(records "")
file(GLOB indices ${SOURCE}/data/device/*/index.json)
foreach(index IN LISTS indices)
  file(READ ${index} json)
  string(JSON gpu GET "${json}" device gpu)
  string(JSON driver GET "${json}" device driver)
  string(JSON date GET "${json}" date)
  string(JSON count LENGTH "${json}" variants)
  if(count GREATER 0)
    math(EXPR last "${count} - 1")
    foreach(i RANGE ${last})
      string(JSON op GET "${json}" variants ${i} op)
      string(JSON name GET "${json}" variants ${i} name)
      string(JSON digest GET "${json}" variants ${i} source_digest)
      string(APPEND records "    {\"${op}\", \"${name}\", \"${gpu}\", \"${driver}\", \"${date}\", \"${digest}\"},\n")
    endforeach()
  endif()
endforeach()

file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT
"// Made by cmake/kernel_records.cmake.
constexpr const char* cuda_compiler_text = \"@CUDA_COMPILER@\";
constexpr SourceDigest source_digests[] = {
@digests@};
const std::vector<DeviceRecord> device_records{
@records@};
")
