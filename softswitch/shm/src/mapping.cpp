#include "catchment/shm/mapping.hpp"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <new>

#include "catchment/common/seals.hpp"
#include "catchment/shm/error.hpp"

namespace catchment::shm {

namespace {

[[noreturn]] void nonsense(const std::string& what) {
  throw ShmError(CATCHMENT_SHM_CORRUPT,
                 "the switch handed over memory that cannot be used: " + what);
}

/// What the header says of the rings, once it is found to be one.
Geometry checked(const Header& header) {
  if (header.magic != kMagic) {
    nonsense("it does not begin with CATCHSHM");
  }
  if (header.version != kVersion || header.header_bytes != sizeof(Header)) {
    nonsense("format version " + std::to_string(header.version) + ", this library speaks " +
             std::to_string(kVersion));
  }
  const Geometry geometry{header.cells, header.cell_bytes};
  if (const std::string problem = refusal(geometry); !problem.empty()) {
    nonsense(problem);
  }
  return geometry;
}

/// Reads the geometry of memory that the switch made, and checks it before any of it is used.
Geometry geometry_of(int memory, std::size_t& bytes) {
  struct stat status{};
  if (fstat(memory, &status) != 0) {
    throw ShmError("cannot look at the shared memory", errno);
  }
  bytes = static_cast<std::size_t>(status.st_size);
  if (!sealed(memory, kSizeSeals)) {
    nonsense("its size is not sealed");
  }
  if (bytes < sizeof(Header)) {
    nonsense("it has " + std::to_string(bytes) + " bytes");
  }
  Header header{};
  if (pread(memory, &header, offsetof(Header, to_switch), 0) !=
      static_cast<ssize_t>(offsetof(Header, to_switch))) {
    throw ShmError("cannot read the shared memory", errno);
  }
  return checked(header);
}

}  // namespace

Mapping::Mapping(FileDescriptor memory, const Geometry& geometry)
    : memory_(std::move(memory)), geometry_(geometry), offsets_(geometry) {
  void* const base =
      mmap(nullptr, offsets_.total, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
  if (base == MAP_FAILED) {
    throw ShmError("cannot map " + std::to_string(offsets_.total) + " bytes of shared memory",
                   errno);
  }
  base_ = base;
}

Mapping::Mapping(void* place, const Geometry& geometry, std::shared_ptr<const void> home)
    : home_(std::move(home)),
      owned_(false),
      geometry_(geometry),
      offsets_(geometry),
      base_(place) {}

Mapping::Mapping(Mapping&& other) noexcept
    : memory_(std::move(other.memory_)),
      home_(std::move(other.home_)),
      owned_(other.owned_),
      geometry_(other.geometry_),
      offsets_(other.offsets_),
      base_(std::exchange(other.base_, nullptr)),
      epoch_(other.epoch_),
      switch_pid_(other.switch_pid_) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(home_, other.home_);
  std::swap(owned_, other.owned_);
  std::swap(geometry_, other.geometry_);
  std::swap(offsets_, other.offsets_);
  std::swap(base_, other.base_);
  std::swap(epoch_, other.epoch_);
  std::swap(switch_pid_, other.switch_pid_);
  return *this;
}

Mapping::~Mapping() {
  if (base_ != nullptr && owned_) {
    munmap(base_, offsets_.total);
  }
}

Mapping Mapping::create(const Geometry& geometry, std::uint64_t epoch, std::uint32_t peer_pid) {
  FileDescriptor memory(memfd_create("catchment-shm", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.valid()) {
    throw ShmError("cannot make shared memory", errno);
  }
  const std::size_t bytes = Offsets(geometry).total;
  if (ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0) {
    throw ShmError("cannot make shared memory of " + std::to_string(bytes) + " bytes", errno);
  }
  if (!seal(memory.get(), kSizeSeals)) {
    throw ShmError("cannot seal the size of the shared memory", errno);
  }
  Mapping mapping(std::move(memory), geometry);
  mapping.fill_in(epoch, peer_pid);
  return mapping;
}

void Mapping::fill_in(std::uint64_t epoch, std::uint32_t peer_pid) {
  epoch_ = epoch;
  switch_pid_ = static_cast<std::uint32_t>(getpid());
  auto& header = *new (base_) Header{};
  header.magic = kMagic;
  header.version = kVersion;
  header.header_bytes = sizeof(Header);
  header.cells = geometry_.cells;
  header.cell_bytes = geometry_.cell_bytes;
  header.epoch = epoch_;
  header.switch_pid = switch_pid_;
  header.peer_pid = peer_pid;
}

Mapping Mapping::lay_out(void* place, const Geometry& geometry, std::uint64_t epoch,
                         std::uint32_t peer_pid) {
  Mapping mapping(place, geometry, nullptr);
  mapping.fill_in(epoch, peer_pid);
  return mapping;
}

Mapping Mapping::found_at(void* place, std::shared_ptr<const void> home) {
  const Header& header = *static_cast<const Header*>(place);
  const Geometry geometry = checked(header);
  Mapping mapping(place, geometry, std::move(home));
  mapping.epoch_ = header.epoch;
  mapping.switch_pid_ = header.switch_pid;
  return mapping;
}

Mapping Mapping::attach(FileDescriptor memory) {
  std::size_t bytes = 0;
  const Geometry geometry = geometry_of(memory.get(), bytes);
  if (bytes != Offsets(geometry).total) {
    nonsense("it has " + std::to_string(bytes) + " bytes where its rings need " +
             std::to_string(Offsets(geometry).total));
  }
  Mapping mapping(std::move(memory), geometry);
  mapping.epoch_ = mapping.header().epoch;
  mapping.switch_pid_ = mapping.header().switch_pid;
  return mapping;
}

RingView Mapping::outgoing(Side side) const {
  return incoming(side == Side::peer ? Side::switch_side : Side::peer);
}

RingView Mapping::incoming(Side side) const {
  const bool peer = side == Side::peer;
  RingIndices& indices = peer ? header().from_switch : header().to_switch;
  const std::size_t lengths = peer ? offsets_.from_switch_lengths : offsets_.to_switch_lengths;
  const std::size_t cells = peer ? offsets_.from_switch_cells : offsets_.to_switch_cells;
  return {&indices.written, &indices.read, reinterpret_cast<std::uint32_t*>(at(lengths)), at(cells),
          geometry_};
}

std::uint32_t& Mapping::waiting(Side side) const {
  return side == Side::peer ? header().peer_waiting : header().switch_waiting;
}

}  // namespace catchment::shm
