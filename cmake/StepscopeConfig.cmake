# find_package(Stepscope): the program STEPSCOPE_PROGRAM, and stepscope_add_benchmark(), which adds a benchmark as a test.
# docs/ci.md shows how to use it.

cmake_minimum_required(VERSION 3.16)

find_program(STEPSCOPE_PROGRAM stepscope HINTS "${CMAKE_CURRENT_LIST_DIR}/../../../bin" DOC "The program stepscope")
if(NOT STEPSCOPE_PROGRAM)
  set(Stepscope_FOUND FALSE)
  set(Stepscope_NOT_FOUND_MESSAGE "The program `stepscope` is not in PATH; set STEPSCOPE_PROGRAM.")
  return()
endif()

#[[
  stepscope_add_benchmark(NAME
    [COMMAND program argument...]   what runs; a target or a path
    [AGAINST program argument...]   what it is compared with, in the same job
    [BASELINE folder]               or with the runs kept there by the target `stepscope-baseline`
    [LAB file]                      a lab file instead of these
    [LIMITS "metric=change"...]     e.g. "heap.allocations=+0%" "step.median=+5%"
    [DIMENSIONS dimension...]       what to record [default: cpu offcpu resources]
    [STEP marks|{ table }]          what a step is, as in a lab file: "marks", or e.g. "{ function = \"step\" }"
    [READY text]                    when the loading phase ends: this text in the output
    [DURATION seconds] [WARMUP seconds] [RUNS count] [TIMEOUT seconds] [OWNED namespace...])

  Adds the test `stepscope.NAME` with the labels `benchmark` and `stepscope`. It runs alone. It fails if a limit is broken or
  cannot be judged, and it is skipped if the result is inconclusive. Its files are in ${CMAKE_CURRENT_BINARY_DIR}/stepscope/NAME.
]]
function(stepscope_add_benchmark name)
  cmake_parse_arguments(PARSE_ARGV 1 B "" "BASELINE;LAB;STEP;READY;DURATION;WARMUP;RUNS;TIMEOUT" "COMMAND;AGAINST;LIMITS;DIMENSIONS;OWNED")
  if(B_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "stepscope_add_benchmark(${name}): unknown arguments: ${B_UNPARSED_ARGUMENTS}")
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/stepscope/${name}")
  if(B_LAB)
    get_filename_component(lab "${B_LAB}" ABSOLUTE)
  elseif(NOT B_COMMAND OR NOT B_LIMITS)
    message(FATAL_ERROR "stepscope_add_benchmark(${name}): needs COMMAND and LIMITS, or LAB")
  else()
    set(lab "${folder}/stepscope.toml")
    _stepscope_write_lab("${lab}" "${name}")
  endif()
  set(job "${STEPSCOPE_PROGRAM}" ci "${lab}" -o "${folder}/ci")
  if(B_RUNS)
    list(APPEND job --runs "${B_RUNS}")
  endif()
  if(B_BASELINE)
    get_filename_component(baseline "${B_BASELINE}" ABSOLUTE)
    list(APPEND job --baseline "${baseline}")
    if(NOT TARGET stepscope-baseline)
      add_custom_target(stepscope-baseline COMMENT "Keeping the runs of all benchmarks as baselines")
    endif()
    # A baseline that is not there is not compared with, so that the new one is kept in any case.
    add_custom_command(TARGET stepscope-baseline POST_BUILD
      COMMAND "${CMAKE_COMMAND}" -E rm -rf "${baseline}"
      COMMAND ${job} --save-baseline VERBATIM)
    foreach(program IN LISTS B_COMMAND)
      if(TARGET "${program}")
        add_dependencies(stepscope-baseline "${program}")
      endif()
    endforeach()
  endif()
  add_test(NAME "stepscope.${name}" COMMAND ${job})
  # Two benchmarks at once would measure each other.
  set_tests_properties("stepscope.${name}" PROPERTIES LABELS "benchmark;stepscope" RUN_SERIAL TRUE SKIP_RETURN_CODE 2)
  if(B_TIMEOUT)
    set_tests_properties("stepscope.${name}" PROPERTIES TIMEOUT "${B_TIMEOUT}")
  endif()
endfunction()

# A list as an array of TOML. The name of a target becomes the path of its program.
function(_stepscope_array out)
  set(array "")
  foreach(item IN LISTS ARGN)
    if(TARGET "${item}")
      set(item "$<TARGET_FILE:${item}>")
    endif()
    string(REPLACE "\\" "\\\\" item "${item}")
    string(REPLACE "\"" "\\\"" item "${item}")
    list(APPEND array "\"${item}\"")
  endforeach()
  list(JOIN array ", " array)
  set(${out} "[${array}]" PARENT_SCOPE)
endfunction()

# Writes the lab file of the benchmark whose arguments are B_... of the caller.
function(_stepscope_write_lab path name)
  if(NOT B_DIMENSIONS)
    set(B_DIMENSIONS cpu offcpu resources)
  endif()
  if(NOT B_DURATION)
    set(B_DURATION 5)
  endif()
  if(NOT B_WARMUP)
    set(B_WARMUP 0)
  endif()
  _stepscope_array(owned ${B_OWNED})
  _stepscope_array(dimensions ${B_DIMENSIONS})
  _stepscope_array(command ${B_COMMAND})
  set(text "# Written by stepscope_add_benchmark(${name}).\n[project]\nname = \"${name}\"\nowned = { namespaces = ${owned} }\n
[record]\ndimensions = ${dimensions}\nphases = [\"steady\"]\nsteady = { warmup_s = ${B_WARMUP}, duration_s = ${B_DURATION} }\n
[scenario.${name}]\ncommand = ${command}\n")
  if(B_READY)
    _stepscope_array(ready "${B_READY}")
    string(REGEX REPLACE "^.(.*).$" "\\1" ready "${ready}")
    string(APPEND text "ready = { log = ${ready} }\n")
  endif()
  if(B_STEP MATCHES "^{")
    string(APPEND text "step = ${B_STEP}\n")
  elseif(B_STEP)
    string(APPEND text "step = \"${B_STEP}\"\n")
  endif()
  if(B_AGAINST)
    _stepscope_array(against ${B_AGAINST})
    string(APPEND text "\n[variant.before]\ncommand = ${against}\n\n[variant.after]\n
[ab]\nbaseline = \"before\"\ncandidate = \"after\"\n")
  endif()
  string(APPEND text "\n[gate]\n")
  foreach(limit IN LISTS B_LIMITS)
    if(NOT limit MATCHES "^([^=]+)=(.+)$")
      message(FATAL_ERROR "stepscope_add_benchmark(${name}): a limit is METRIC=CHANGE, not ${limit}")
    endif()
    string(APPEND text "\"${CMAKE_MATCH_1}\" = \"${CMAKE_MATCH_2}\"\n")
  endforeach()
  file(GENERATE OUTPUT "${path}" CONTENT "${text}")
endfunction()
