// The memory that both sides map: a memfd whose size is sealed, so that neither side can take pages
// away.
#pragma once

#include <cstdint>
#include <memory>

#include "catchment/common/file_descriptor.hpp"
#include "catchment/shm/layout.hpp"
#include "catchment/shm/ring.hpp"

namespace catchment::shm {

enum class Side { switch_side, peer };

class Mapping {
 public:
  /// New memory with its header filled in. Throws ShmError.
  static Mapping create(const Geometry& geometry, std::uint64_t epoch, std::uint32_t peer_pid);
  /// Maps what the switch handed over. Throws ShmError (CORRUPT) when it is not what it should be.
  static Mapping attach(FileDescriptor memory);

  /// Bytes that rings of this geometry take, from the beginning of a page on.
  static std::size_t bytes_of(const Geometry& geometry) { return Offsets(geometry).total; }
  /// New rings in memory that is mapped already, and stays.
  static Mapping lay_out(void* place, const Geometry& geometry, std::uint64_t epoch,
                         std::uint32_t peer_pid);
  /// Those rings in the peer, where `home` keeps the memory mapped. Throws ShmError (CORRUPT).
  static Mapping found_at(void* place, std::shared_ptr<const void> home);

  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  /// The sizes, checked once; the page is not asked again.
  [[nodiscard]] const Geometry& geometry() const { return geometry_; }
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }
  [[nodiscard]] std::uint32_t switch_pid() const { return switch_pid_; }
  [[nodiscard]] int descriptor() const { return memory_.get(); }
  /// The switch calls it once the peer has the descriptor.
  void close_descriptor() { memory_ = FileDescriptor(); }

  [[nodiscard]] RingView outgoing(Side side) const;
  [[nodiscard]] RingView incoming(Side side) const;
  /// What `side` waits for, with attachment_bits() of the attachment that it waits in.
  [[nodiscard]] std::uint32_t& waiting(Side side) const;
  /// Bits beside those of Waiting that two attachments, one after the other in the same memory, are
  /// told apart by.
  [[nodiscard]] std::uint32_t attachment_bits() const {
    return static_cast<std::uint32_t>(epoch_) & ~std::uint32_t{kForFrames | kForRoom};
  }

 private:
  Mapping(FileDescriptor memory, const Geometry& geometry);
  Mapping(void* place, const Geometry& geometry, std::shared_ptr<const void> home);
  void fill_in(std::uint64_t epoch, std::uint32_t peer_pid);
  [[nodiscard]] Header& header() const { return *static_cast<Header*>(base_); }
  [[nodiscard]] std::uint8_t* at(std::size_t offset) const {
    return static_cast<std::uint8_t*>(base_) + offset;
  }

  FileDescriptor memory_;
  std::shared_ptr<const void> home_;
  bool owned_ = true;  // the mapping ends with this object
  Geometry geometry_;
  Offsets offsets_;
  void* base_ = nullptr;
  std::uint64_t epoch_ = 0;
  std::uint32_t switch_pid_ = 0;
};

}  // namespace catchment::shm
