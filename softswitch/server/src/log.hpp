// What an operator may want to know, on stderr.
#pragma once

#include <string>

namespace catchment::server {

enum class LogLevel { error, info, debug };

// Any thread may write; a line stays whole.
class Log {
 public:
  explicit Log(LogLevel level) : level_(level) {}

  void info(const std::string& text) const { write(LogLevel::info, text); }
  void debug(const std::string& text) const { write(LogLevel::debug, text); }

 private:
  void write(LogLevel level, const std::string& text) const;

  LogLevel level_;
};

}  // namespace catchment::server
