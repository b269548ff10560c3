// What a Verilated model says when it ends: an assertion that failed, $fatal, $stop, $finish, an
// error of Verilator's run-time. Verilator's own answers end the process; here the model's
// evaluation is left by an exception, the first failure is kept, and the program asks for it.
// Verilator's run-time is compiled with this header before its first line (rtl/verilate.py).
#pragma once

#include <cstdint>

// Verilator's run-time leaves these functions, and the one that prints, to failures.cpp.
#define VL_USER_STOP
#define VL_USER_FATAL
#define VL_USER_FINISH
#define VL_PRINTF catchment_rtl_print

extern "C" {
int catchment_rtl_print(const char* format, ...) __attribute__((format(printf, 1, 2)));

// The first failure since the last call, 0 if there was none. The strings live until the next one.
std::uint32_t catchment_rtl_failure(const char** file, std::uint32_t* line, const char** message);
}

namespace catchment::rtl {

// Leaves a model's evaluation; the failure has been noted. Only top.hpp catches it.
struct Ended {};

}  // namespace catchment::rtl
