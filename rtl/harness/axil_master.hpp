// One access at a time to a NIC's registers.
#pragma once

#include <cstdint>

namespace catchment::rtl {

template <typename Top>
class AxilMaster {
 public:
  static constexpr std::uint32_t kNoAnswer = 0xFF;

  void begin_write(std::uint32_t address, std::uint32_t value, std::uint32_t strobes) {
    address_ = address;
    value_ = value;
    strobes_ = strobes;
    address_left_ = data_left_ = waits_ = true;
    reads_ = false;
  }

  void begin_read(std::uint32_t address) {
    address_ = address;
    address_left_ = waits_ = reads_ = true;
  }

  // The access has not been answered.
  [[nodiscard]] bool busy() const { return waits_; }
  [[nodiscard]] std::uint32_t value() const { return value_; }
  [[nodiscard]] std::uint32_t response() const { return waits_ ? kNoAnswer : response_; }
  void give_up() { waits_ = address_left_ = data_left_ = false; }

  void drive(Top& top) {
    top.s_axil_awaddr = address_;
    top.s_axil_awvalid = waits_ && !reads_ && address_left_;
    top.s_axil_wdata = value_;
    top.s_axil_wstrb = strobes_;
    top.s_axil_wvalid = waits_ && !reads_ && data_left_;
    top.s_axil_bready = 1;
    top.s_axil_araddr = address_;
    top.s_axil_arvalid = waits_ && reads_ && address_left_;
    top.s_axil_rready = 1;
  }

  void sample(const Top& top) {
    if (!waits_) return;
    if (reads_) {
      if (top.s_axil_arvalid && top.s_axil_arready) address_left_ = false;
      if (top.s_axil_rvalid) {
        value_ = top.s_axil_rdata;
        response_ = top.s_axil_rresp;
        waits_ = false;
      }
      return;
    }
    if (top.s_axil_awvalid && top.s_axil_awready) address_left_ = false;
    if (top.s_axil_wvalid && top.s_axil_wready) data_left_ = false;
    if (top.s_axil_bvalid) {
      response_ = top.s_axil_bresp;
      waits_ = false;
    }
  }

 private:
  std::uint32_t address_ = 0;
  std::uint32_t value_ = 0;
  std::uint32_t strobes_ = 0;
  std::uint32_t response_ = 0;
  bool address_left_ = false;
  bool data_left_ = false;
  bool waits_ = false;
  bool reads_ = false;
};

}  // namespace catchment::rtl
