// A worker's transport: gradients up (PA), parameters down (PARAM, or with settings.all_reduce the sums, FA).
module worker_transport
  import transport_pkg::*;
#(
    // bytes of a vector, a multiple of 64
    parameter int unsigned VECTOR_BYTES = 256,
    // places of each ring, a power of two
    parameter int unsigned WINDOW = 1024
) (
    input  logic                     clk,
    input  logic                     rst,

    input  transport_settings_t      settings,
    output transport_status_t        status,
    // the counter stat_index of the clock before the last
    input  logic [StatIndexBits-1:0] stat_index,
    output logic [StatBits-1:0]      stat_value,

    // vectors from the host, VECTOR_BYTES / 64 beats each; while the stream is disabled they are dropped
    input  logic [511:0]             s_axis_tx_tdata,
    input  logic                     s_axis_tx_tlast,
    input  tx_meta_t                 s_axis_tx_tuser,
    input  logic                     s_axis_tx_tvalid,
    output logic                     s_axis_tx_tready,

    // vectors to the host, in order
    output logic [511:0]             m_axis_rx_tdata,
    output logic                     m_axis_rx_tlast,
    output rx_meta_t                 m_axis_rx_tuser,
    output logic                     m_axis_rx_tvalid,
    input  logic                     m_axis_rx_tready,

    // frames from the MAC, without FCS; tuser with tlast: damaged.  tready is always high
    input  logic [511:0]             s_axis_net_tdata,
    input  logic [63:0]              s_axis_net_tkeep,
    input  logic                     s_axis_net_tlast,
    input  logic                     s_axis_net_tuser,
    input  logic                     s_axis_net_tvalid,
    output logic                     s_axis_net_tready,

    // frames to the MAC, without gaps inside a frame
    output logic [511:0]             m_axis_net_tdata,
    output logic [63:0]              m_axis_net_tkeep,
    output logic                     m_axis_net_tlast,
    output logic                     m_axis_net_tvalid,
    input  logic                     m_axis_net_tready
);

  transport #(.VECTOR_BYTES(VECTOR_BYTES), .WINDOW(WINDOW), .ROOT(1'b0)) core (.*);

endmodule : worker_transport
