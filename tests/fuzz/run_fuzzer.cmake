# cmake -DFUZZER=… -DCORPUS=… -DWORK=… -DDICTIONARY=… -DSECONDS=… -DLENGTH=… -P run_fuzzer.cmake
# The seed is fixed: a suite that fails fails again; for other inputs run the fuzzer itself with another -seed.
# Fuzzes from a copy of the stored corpus: what the fuzzer finds on its way stays out of the source tree.
file(REMOVE_RECURSE ${WORK})
file(COPY ${CORPUS}/ DESTINATION ${WORK}/corpus)
# No single allocation above 100 MB, whatever the input says; 10 s is for a busy machine under the sanitizers.
execute_process(
  COMMAND ${FUZZER} -seed=1 -max_total_time=${SECONDS} -max_len=${LENGTH} -malloc_limit_mb=100 -timeout=10 -verbosity=1
          -print_final_stats=1 -dict=${DICTIONARY} -artifact_prefix=${WORK}/ ${WORK}/corpus
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
string(LENGTH "${output}" length)
if(length GREATER 4000)
  math(EXPR start "${length} - 4000")
  string(SUBSTRING "${output}" ${start} -1 output)
endif()
message("${output}")
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the fuzzer ended with ${result}; the input that it stopped at lies in ${WORK}")
endif()
