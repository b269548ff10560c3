// A port whose frames end with a tag: what leaves gets one, what comes without the right one is not
// seen.  Members above know nothing of tags.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "port.hpp"
#include "term_keys.hpp"

namespace catchment::host {

// The keys of a generation; whoever has given them may give the next ones while no thread uses the
// port.
using StreamKeys = std::pair<std::uint16_t, std::shared_ptr<const TermKeys>>;

class TaggedPort final : public Port {
 public:
  // keys: by generation; `frame_bytes`: the longest frame without its tag.
  TaggedPort(std::unique_ptr<Port> port, std::vector<StreamKeys> keys, std::size_t frame_bytes);

  std::uint8_t* stage() override { return room_ = port_->stage(); }
  using Port::commit;
  void commit(std::size_t bytes, std::span<const std::uint8_t> rest) override;
  bool flush() override { return port_->flush(); }
  void discard() override { port_->discard(); }
  Flushed flush_if_free() override { return port_->flush_if_free(); }
  std::span<const std::span<const std::uint8_t>> receive() override;
  bool more() const override { return port_->more(); }
  bool may_sleep(bool full, const std::atomic<int>& stop) override {
    return port_->may_sleep(full, stop);
  }
  std::size_t path_bytes() const override;
  int descriptor() const override { return port_->descriptor(); }
  std::uint64_t errors() const override { return port_->errors(); }
  int last_error() const override { return port_->last_error(); }
  bool lossless() const override { return port_->lossless(); }
  std::uint64_t connections() const override { return port_->connections(); }
  bool tells_absence() const override { return port_->tells_absence(); }
  bool absent() const override { return port_->absent(); }
  std::string absence() const override { return port_->absence(); }
  std::uint64_t foreign() const override { return port_->foreign(); }
  std::uint64_t forged() const override { return forged_; }

 private:
  const TagKey* key_of(const std::uint8_t* frame) const;
  // Whether `bytes` at `frame` end with the right tag.
  bool is_right(const std::uint8_t* frame, std::size_t bytes) const;

  std::unique_ptr<Port> port_;
  std::vector<StreamKeys> keys_;
  std::size_t longest_;
  std::uint8_t* room_ = nullptr;
  std::vector<std::uint8_t> copies_;
  std::vector<std::span<const std::uint8_t>> frames_;
  std::uint64_t forged_ = 0;
};

// `port` itself where there are no keys; otherwise it needs room for a tag behind each frame.
std::unique_ptr<Port> with_tags(std::unique_ptr<Port> port,
                                std::vector<std::pair<std::uint16_t, TagKey>> keys,
                                std::size_t frame_bytes);
std::unique_ptr<Port> with_tags(std::unique_ptr<Port> port, std::vector<StreamKeys> keys,
                                std::size_t frame_bytes);

}  // namespace catchment::host
