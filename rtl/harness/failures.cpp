#include "rtl/harness/failures.hpp"

#include <cstdarg>
#include <cstdio>
#include <string>
#include <utility>

#include "verilated.h"

namespace {

struct Failure {
  std::string file;
  std::uint32_t line = 0;
  std::string message;
};

Failure first;          // since it was asked for last; without a message: none
Failure told;           // the one whose strings the caller has
std::string last_said;  // Verilator prints what failed before it says that something did

[[noreturn]] void end(const char* file, int line, const char* what) {
  if (first.message.empty()) {
    const std::string path = file;
    const std::string place = path.substr(path.rfind('/') + 1) + ":" + std::to_string(line) + ":";
    const bool said = last_said.find(place) != std::string::npos;
    first = {file, static_cast<std::uint32_t>(line), said ? last_said : std::string(what)};
  }
  last_said.clear();
  throw catchment::rtl::Ended{};
}

}  // namespace

void vl_stop(const char* file, int line, const char* /*hier*/) { end(file, line, "$stop"); }

void vl_finish(const char* file, int line, const char* /*hier*/) { end(file, line, "$finish"); }

void vl_fatal(const char* file, int line, const char* /*hier*/, const char* message) {
  end(file, line, message);
}

extern "C" {

int catchment_rtl_print(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  char text[4096];
  const int count = std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  last_said = text;
  std::fputs(text, stdout);
  return count;
}

std::uint32_t catchment_rtl_failure(const char** file, std::uint32_t* line, const char** message) {
  if (first.message.empty()) return 0;
  told = std::exchange(first, {});
  *file = told.file.c_str();
  *line = told.line;
  *message = told.message.c_str();
  return 1;
}
}
