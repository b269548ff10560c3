// A file of frames for the load generators: each behind its length, 32 bits in network byte order.
#pragma once

#include <arpa/inet.h>

#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace catchment::bench {

/// Reads at least one frame. Throws runtime_error: the file cannot be read, is cut short, or has
/// none.
inline std::vector<std::string> read_frames(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<std::string> frames;
  std::uint32_t size = 0;
  while (in.read(reinterpret_cast<char*>(&size), sizeof size)) {
    frames.emplace_back(ntohl(size), '\0');
    in.read(frames.back().data(), static_cast<std::streamsize>(frames.back().size()));
  }
  if (!in.eof() || frames.empty()) {
    throw std::runtime_error(path + " holds no frames");
  }
  return frames;
}

}  // namespace catchment::bench
