// LuWu's NICs (section 3.2; docs/explanation/nic.md).  ROLE_WORKER is the WorkerNIC: it sends a GPU's gradients out of its memory to the
// switch and writes parameters, or in all-reduce sums, to its memory.  ROLE_ROOT is the AggNIC: it sends the optimizer
// node's parameters to all workers and writes the sums of their gradients to its memory.
`include "parameters.svh"
`include "ports.svh"

module nic
  import nic_regs_pkg::AddressBits;
  import tag_pkg::tag_keys_t;
  import transport_pkg::*;
#(
    `NIC_PARAMETERS
) (
    input  logic                         clk,
    input  logic                         rst,
    // level-triggered; register IRQ says why it is high
    output logic                         irq,

    // AXI4-Lite: registers (docs/reference/registers.md)
    `AXIL_SLAVE_PORTS(s_axil, AddressBits),

    // AXI4 to memory; one id, so that everything is answered in order
    `AXI_WRITE_PORTS(m_axi),
    `AXI_READ_PORTS(m_axi),
    output logic [0:0]   m_axi_awid,
    output logic [2:0]   m_axi_awsize,
    output logic [1:0]   m_axi_awburst,
    output logic         m_axi_awlock,
    output logic [3:0]   m_axi_awcache,
    output logic [2:0]   m_axi_awprot,
    input  logic [0:0]   m_axi_bid,
    output logic [0:0]   m_axi_arid,
    output logic [2:0]   m_axi_arsize,
    output logic [1:0]   m_axi_arburst,
    output logic         m_axi_arlock,
    output logic [3:0]   m_axi_arcache,
    output logic [2:0]   m_axi_arprot,
    input  logic [0:0]   m_axi_rid,

    // frames from the MAC, without FCS; tuser with tlast: damaged
    `AXIS_FRAME_IN_PORTS(s_axis_rx),

    // frames to the MAC; tuser with tlast: cut by a soft reset, do not send it or spoil its FCS
    `AXIS_FRAME_OUT_PORTS(m_axis_tx)
);

  logic                     core_rst;
  transport_settings_t      settings;
  transport_status_t        status;
  logic [StatIndexBits-1:0] stat_index;
  logic [StatBits-1:0]      stat_value;
  `AXIS_VECTOR_SIGNALS(tx, tx_meta_t)
  `AXIS_VECTOR_SIGNALS(rx, rx_meta_t)
  `AXIS_KEEP_SIGNALS(out)
  logic                     in_tvalid;
  logic                     in_tready;
  // between the transport and what makes and checks tags, if there is that
  `AXIS_KEEP_SIGNALS(sent)
  `AXIS_KEEP_SIGNALS(came)
  logic                     came_tuser;
  logic                     came_forged;
  tag_keys_t                keys;
  logic                     tag_lost;

  // 64-byte beats, incrementing, modifiable and bufferable.
  assign {m_axi_awid, m_axi_arid}       = '0;
  assign {m_axi_awsize, m_axi_arsize}   = {3'd6, 3'd6};
  assign {m_axi_awburst, m_axi_arburst} = {2'b01, 2'b01};
  assign {m_axi_awlock, m_axi_arlock}   = '0;
  assign {m_axi_awcache, m_axi_arcache} = {4'b0011, 4'b0011};
  assign {m_axi_awprot, m_axi_arprot}   = '0;

  wire unused = &{1'b0, m_axi_bid, m_axi_rid};

  nic_shell #(
      `NIC_PASS
  ) shell (
      .clk,
      .rst,
      .irq,
      `AXIL_CONNECT(s_axil, s_axil),
      `AXI_WRITE_CONNECT(m_axi, m_axi),
      `AXI_READ_CONNECT(m_axi, m_axi),
      `AXIS_FRAME_CONNECT(s_axis_rx, s_axis_rx),
      `AXIS_FRAME_CONNECT(m_axis_tx, m_axis_tx),
      .core_rst,
      .settings,
      .keys,
      .tag_lost,
      .transport_status(status),
      .stat_index,
      .stat_value,
      `AXIS_VECTOR_CONNECT(m_axis_vector, tx),
      `AXIS_VECTOR_CONNECT(s_axis_vector, rx),
      `AXIS_KEEP_CONNECT(s_axis_frame, out),
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
      `AXIS_VECTOR_CONNECT(s_axis_tx, tx),
      `AXIS_VECTOR_CONNECT(m_axis_rx, rx),
      `AXIS_FRAME_CONNECT(s_axis_net, came),
      .s_net_forged(came_forged),
      `AXIS_KEEP_CONNECT(m_axis_net, sent)
  );

  if (TAG_UNITS != 0) begin : gen_tags
    tag_writer #(.UNITS(TAG_UNITS)) writer (
        .clk,
        .rst(core_rst),
        .tx_gen(settings.tx.gen),
        .rx_gen(settings.rx.gen),
        .keys,
        `AXIS_KEEP_CONNECT(s_axis, sent),
        `AXIS_KEEP_CONNECT(m_axis, out)
    );

    tag_reader #(.UNITS(TAG_UNITS), .VECTOR_BYTES(VECTOR_BYTES)) reader (
        .clk,
        .rst(core_rst),
        .tx_gen(settings.tx.gen),
        .rx_gen(settings.rx.gen),
        .keys,
        .s_axis_tdata(s_axis_rx_tdata),
        .s_axis_tkeep(s_axis_rx_tkeep),
        .s_axis_tlast(s_axis_rx_tlast),
        .s_axis_tuser(s_axis_rx_tuser),
        .s_axis_tvalid(in_tvalid),
        .s_axis_tready(in_tready),
        `AXIS_FRAME_CONNECT(m_axis, came),
        .m_forged(came_forged),
        .lost(tag_lost)
    );
  end else begin : gen_no_tags
    assign {out_tdata, out_tkeep, out_tlast, out_tvalid, sent_tready} = {sent_tdata, sent_tkeep, sent_tlast, sent_tvalid, out_tready};
    assign {came_tdata, came_tkeep, came_tlast, came_tuser} = {s_axis_rx_tdata, s_axis_rx_tkeep, s_axis_rx_tlast, s_axis_rx_tuser};
    assign {came_tvalid, came_forged, in_tready, tag_lost}  = {in_tvalid, 1'b0, came_tready, 1'b0};
    wire unused_keys = &{1'b0, keys};
  end

endmodule : nic
