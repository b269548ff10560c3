// LuWu's two NICs (section 3.2; docs/nic.md).  ROLE_WORKER is the WorkerNIC: it sends a GPU's gradients out of its memory to the
// switch and writes parameters, or in all-reduce sums, to its memory.  ROLE_ROOT is the AggNIC: it sends the optimizer
// node's parameters to all workers and writes the sums of their gradients to its memory.
module nic
  import nic_regs_pkg::AddressBits;
  import transport_pkg::*;
#(
    // a role_t; a plain bit, since Yosys gives an enumeration no value from outside
    parameter bit ROLE = ROLE_WORKER,
    // bytes of a vector, a power of two, 64..8192
    parameter int unsigned VECTOR_BYTES = 256,
    // frames of each ring, a power of two
    parameter int unsigned WINDOW = 1024,
    // 0: a worker is never in all-reduce; leaves out the conversion back
    parameter bit ALL_REDUCE = 1'b1,
    // registers of a converter's lane, 1..3
    parameter int unsigned STAGES = 3,
    // requests that wait in each direction, a power of two
    parameter int unsigned QUEUE_DEPTH = 16,
    // 2 MiB pages, a power of two
    parameter int unsigned TLB_ENTRIES = 1024,
    // beats asked of memory at a time, a power of two: bandwidth times latency
    parameter int unsigned READ_BEATS = 512,
    // beats that wait for memory, a power of two
    parameter int unsigned WRITE_BEATS = 64,
    // beats of the longest burst, a power of two, at most 64
    parameter int unsigned BURST_BEATS = 16
) (
    input  logic                         clk,
    input  logic                         rst,
    // level; see IRQ
    output logic                         irq,

    // AXI4-Lite: registers (docs/registers.md)
    input  logic [AddressBits-1:0]       s_axil_awaddr,
    input  logic [2:0]                   s_axil_awprot,
    input  logic                         s_axil_awvalid,
    output logic                         s_axil_awready,
    input  logic [31:0]                  s_axil_wdata,
    input  logic [3:0]                   s_axil_wstrb,
    input  logic                         s_axil_wvalid,
    output logic                         s_axil_wready,
    output logic [1:0]                   s_axil_bresp,
    output logic                         s_axil_bvalid,
    input  logic                         s_axil_bready,
    input  logic [AddressBits-1:0]       s_axil_araddr,
    input  logic [2:0]                   s_axil_arprot,
    input  logic                         s_axil_arvalid,
    output logic                         s_axil_arready,
    output logic [31:0]                  s_axil_rdata,
    output logic [1:0]                   s_axil_rresp,
    output logic                         s_axil_rvalid,
    input  logic                         s_axil_rready,

    // AXI4 to memory; one id, so that everything is answered in order
    output logic [0:0]                   m_axi_awid,
    output logic [63:0]                  m_axi_awaddr,
    output logic [7:0]                   m_axi_awlen,
    output logic [2:0]                   m_axi_awsize,
    output logic [1:0]                   m_axi_awburst,
    output logic                         m_axi_awlock,
    output logic [3:0]                   m_axi_awcache,
    output logic [2:0]                   m_axi_awprot,
    output logic                         m_axi_awvalid,
    input  logic                         m_axi_awready,
    output logic [511:0]                 m_axi_wdata,
    output logic [63:0]                  m_axi_wstrb,
    output logic                         m_axi_wlast,
    output logic                         m_axi_wvalid,
    input  logic                         m_axi_wready,
    input  logic [0:0]                   m_axi_bid,
    input  logic [1:0]                   m_axi_bresp,
    input  logic                         m_axi_bvalid,
    output logic                         m_axi_bready,
    output logic [0:0]                   m_axi_arid,
    output logic [63:0]                  m_axi_araddr,
    output logic [7:0]                   m_axi_arlen,
    output logic [2:0]                   m_axi_arsize,
    output logic [1:0]                   m_axi_arburst,
    output logic                         m_axi_arlock,
    output logic [3:0]                   m_axi_arcache,
    output logic [2:0]                   m_axi_arprot,
    output logic                         m_axi_arvalid,
    input  logic                         m_axi_arready,
    input  logic [0:0]                   m_axi_rid,
    input  logic [511:0]                 m_axi_rdata,
    input  logic [1:0]                   m_axi_rresp,
    input  logic                         m_axi_rlast,
    input  logic                         m_axi_rvalid,
    output logic                         m_axi_rready,

    // frames from the MAC, without FCS; tuser with tlast: damaged
    input  logic [511:0]                 s_axis_rx_tdata,
    input  logic [63:0]                  s_axis_rx_tkeep,
    input  logic                         s_axis_rx_tlast,
    input  logic                         s_axis_rx_tuser,
    input  logic                         s_axis_rx_tvalid,
    output logic                         s_axis_rx_tready,

    // frames to the MAC; tuser with tlast: cut by a soft reset, do not send it or spoil its FCS
    output logic [511:0]                 m_axis_tx_tdata,
    output logic [63:0]                  m_axis_tx_tkeep,
    output logic                         m_axis_tx_tlast,
    output logic                         m_axis_tx_tuser,
    output logic                         m_axis_tx_tvalid,
    input  logic                         m_axis_tx_tready
);

  logic                     core_rst;
  transport_settings_t      settings;
  transport_status_t        status;
  logic [StatIndexBits-1:0] stat_index;
  logic [StatBits-1:0]      stat_value;
  logic [511:0]             tx_tdata;
  logic                     tx_tlast;
  tx_meta_t                 tx_tuser;
  logic                     tx_tvalid;
  logic                     tx_tready;
  logic [511:0]             rx_tdata;
  logic                     rx_tlast;
  rx_meta_t                 rx_tuser;
  logic                     rx_tvalid;
  logic                     rx_tready;
  logic [511:0]             out_tdata;
  logic [63:0]              out_tkeep;
  logic                     out_tlast;
  logic                     out_tvalid;
  logic                     out_tready;
  logic                     in_tvalid;
  logic                     in_tready;

  // 64-byte beats, incrementing, modifiable and bufferable.
  assign {m_axi_awid, m_axi_arid}       = '0;
  assign {m_axi_awsize, m_axi_arsize}   = {3'd6, 3'd6};
  assign {m_axi_awburst, m_axi_arburst} = {2'b01, 2'b01};
  assign {m_axi_awlock, m_axi_arlock}   = '0;
  assign {m_axi_awcache, m_axi_arcache} = {4'b0011, 4'b0011};
  assign {m_axi_awprot, m_axi_arprot}   = '0;

  wire unused = &{1'b0, m_axi_bid, m_axi_rid};

  nic_shell #(
      .ROLE(ROLE),
      .VECTOR_BYTES(VECTOR_BYTES),
      .WINDOW(WINDOW),
      .ALL_REDUCE(ALL_REDUCE),
      .STAGES(STAGES),
      .QUEUE_DEPTH(QUEUE_DEPTH),
      .TLB_ENTRIES(TLB_ENTRIES),
      .READ_BEATS(READ_BEATS),
      .WRITE_BEATS(WRITE_BEATS),
      .BURST_BEATS(BURST_BEATS)
  ) shell (
      .clk,
      .rst,
      .irq,
      .s_axil_awaddr,
      .s_axil_awprot,
      .s_axil_awvalid,
      .s_axil_awready,
      .s_axil_wdata,
      .s_axil_wstrb,
      .s_axil_wvalid,
      .s_axil_wready,
      .s_axil_bresp,
      .s_axil_bvalid,
      .s_axil_bready,
      .s_axil_araddr,
      .s_axil_arprot,
      .s_axil_arvalid,
      .s_axil_arready,
      .s_axil_rdata,
      .s_axil_rresp,
      .s_axil_rvalid,
      .s_axil_rready,
      .m_axi_awaddr,
      .m_axi_awlen,
      .m_axi_awvalid,
      .m_axi_awready,
      .m_axi_wdata,
      .m_axi_wstrb,
      .m_axi_wlast,
      .m_axi_wvalid,
      .m_axi_wready,
      .m_axi_bresp,
      .m_axi_bvalid,
      .m_axi_bready,
      .m_axi_araddr,
      .m_axi_arlen,
      .m_axi_arvalid,
      .m_axi_arready,
      .m_axi_rdata,
      .m_axi_rresp,
      .m_axi_rlast,
      .m_axi_rvalid,
      .m_axi_rready,
      .s_axis_rx_tdata,
      .s_axis_rx_tkeep,
      .s_axis_rx_tlast,
      .s_axis_rx_tuser,
      .s_axis_rx_tvalid,
      .s_axis_rx_tready,
      .m_axis_tx_tdata,
      .m_axis_tx_tkeep,
      .m_axis_tx_tlast,
      .m_axis_tx_tuser,
      .m_axis_tx_tvalid,
      .m_axis_tx_tready,
      .core_rst,
      .settings,
      .transport_status(status),
      .stat_index,
      .stat_value,
      .m_axis_vector_tdata(tx_tdata),
      .m_axis_vector_tlast(tx_tlast),
      .m_axis_vector_tuser(tx_tuser),
      .m_axis_vector_tvalid(tx_tvalid),
      .m_axis_vector_tready(tx_tready),
      .s_axis_vector_tdata(rx_tdata),
      .s_axis_vector_tlast(rx_tlast),
      .s_axis_vector_tuser(rx_tuser),
      .s_axis_vector_tvalid(rx_tvalid),
      .s_axis_vector_tready(rx_tready),
      .s_axis_frame_tdata(out_tdata),
      .s_axis_frame_tkeep(out_tkeep),
      .s_axis_frame_tlast(out_tlast),
      .s_axis_frame_tvalid(out_tvalid),
      .s_axis_frame_tready(out_tready),
      .m_axis_frame_tvalid(in_tvalid),
      .m_axis_frame_tready(in_tready)
  );

  transport #(
      .ROLE(ROLE),
      .VECTOR_BYTES(VECTOR_BYTES),
      .WINDOW(WINDOW)
  ) streams (
      .clk,
      .rst(core_rst),
      .settings,
      .status,
      .stat_index,
      .stat_value,
      .s_axis_tx_tdata(tx_tdata),
      .s_axis_tx_tlast(tx_tlast),
      .s_axis_tx_tuser(tx_tuser),
      .s_axis_tx_tvalid(tx_tvalid),
      .s_axis_tx_tready(tx_tready),
      .m_axis_rx_tdata(rx_tdata),
      .m_axis_rx_tlast(rx_tlast),
      .m_axis_rx_tuser(rx_tuser),
      .m_axis_rx_tvalid(rx_tvalid),
      .m_axis_rx_tready(rx_tready),
      .s_axis_net_tdata(s_axis_rx_tdata),
      .s_axis_net_tkeep(s_axis_rx_tkeep),
      .s_axis_net_tlast(s_axis_rx_tlast),
      .s_axis_net_tuser(s_axis_rx_tuser),
      .s_axis_net_tvalid(in_tvalid),
      .s_axis_net_tready(in_tready),
      .m_axis_net_tdata(out_tdata),
      .m_axis_net_tkeep(out_tkeep),
      .m_axis_net_tlast(out_tlast),
      .m_axis_net_tvalid(out_tvalid),
      .m_axis_net_tready(out_tready)
  );

endmodule : nic
