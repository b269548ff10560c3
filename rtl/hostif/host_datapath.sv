// All of a NIC between its registers, memory and the transport: the host access module, the conversions, and vectors.
`include "parameters.svh"
`include "ports.svh"

module host_datapath
  import catchment_wire_pkg::*;
  import format_pkg::*;
  import hostif_pkg::*;
  import transport_pkg::*;
#(
    // whether pushes of floats can be converted, and pulls of floats
    parameter bit PUSH_CONVERT = 1'b1,
    parameter bit PULL_CONVERT = 1'b1,
    // whether messages may be block-scaled, which takes both
    parameter bit BLOCK = 1'b1,
    `DATAPATH_PARAMETERS
) (
    input  logic                         clk,
    input  logic                         rst,
    // no new burst begins while `hold` is high; `idle` then says that none is under way
    input  logic                         hold,
    output logic                         idle,
    input  logic [31:0]                  now,
    // headroom h = ceil(log2 workers) of each stream
    input  logic [HeadroomBits-1:0]      push_headroom,
    input  logic [HeadroomBits-1:0]      pull_headroom,
    // lanes of gradients and sums are packed; the workers are 2^h
    input  logic                         pairs,
    input  logic                         full,

    input  request_t                     push_request,
    input  logic                         push_ring,
    output logic [$clog2(QUEUE_DEPTH):0] push_free,
    input  type_set_t                    push_types,
    // in the mode that the streams are in, and T
    input  logic                         block_allowed,
    input  logic [20:0]                  slots,
    input  request_t                     pull_request,
    input  logic                         pull_ring,
    output logic [$clog2(QUEUE_DEPTH):0] pull_free,
    input  type_set_t                    pull_types,

    input  logic                         fill_valid,
    output logic                         fill_ready,
    input  vpn_t                         fill_vpn,
    input  ppn_t                         fill_ppn,
    input  logic                         fill_present,

    // vectors to and from the transport
    `AXIS_VECTOR_OUT_PORTS(m_axis, tx_meta_t),
    `AXIS_VECTOR_IN_PORTS(s_axis, rx_meta_t),

    `AXI_WRITE_PORTS(m_axi),
    `AXI_READ_PORTS(m_axi),

    output host_events_t                 events,
    output host_stalls_t                 stalls
);

  job_t              push_job;
  logic              push_job_valid;
  logic              push_job_ready;
  logic [511:0]      push_tdata;
  logic [63:0]       push_tkeep;
  logic              push_tlast;
  logic [1:0]        push_tuser;
  data_type_t        push_dtype;
  logic signed [7:0] push_exponent;
  logic              push_block;
  logic              push_tvalid;
  logic              push_tready;
  completion_t       push_completion;
  logic              push_completion_valid;
  logic              push_completion_ready;
  job_t              pull_job;
  logic              pull_job_valid;
  logic              pull_job_ready;
  logic [511:0]      pull_tdata;
  logic [63:0]       pull_tkeep;
  logic              pull_tvalid;
  logic              pull_tready;
  logic              pull_data_done;
  logic              pull_data_error;
  logic              pull_data_unmapped;
  completion_t       pull_completion;
  logic              pull_completion_valid;
  logic              pull_completion_ready;
  logic              push_open;
  logic signed [7:0] agreed;
  logic              agreed_valid;
  type_set_t         block_types;

  // The buffer holds T vectors and one more, which are of twice as many beats if their fp32 numbers are packed; half a beat is
  // no vector's end.
  localparam int unsigned Beats = VECTOR_BYTES / 64;
  localparam type_set_t Wide = 8'd1 << DATA_TYPE_FP32;
  localparam type_set_t Narrow = 8'd1 << DATA_TYPE_FP16 | 8'd1 << DATA_TYPE_BF16;

  wire fits   = BLOCK && block_allowed && slots < 21'(BLOCK_BEATS / Beats);
  wire fits_2 = slots < 21'(BLOCK_BEATS / Beats / 2);

  assign block_types = (fits && (!pairs || fits_2) ? Wide : '0) | (fits && (pairs || Beats > 1) ? Narrow : '0);

  host_access #(
      `ACCESS_PASS
  ) access (
      .clk,
      .rst,
      .hold,
      .idle,
      .now,
      .push_request,
      .push_ring,
      .push_free,
      .push_types,
      .block_types,
      .pull_request,
      .pull_ring,
      .pull_free,
      .pull_types,
      .fill_valid,
      .fill_ready,
      .fill_vpn,
      .fill_ppn,
      .fill_present,
      .m_push_job(push_job),
      .m_push_job_valid(push_job_valid),
      .m_push_job_ready(push_job_ready),
      .m_push_axis_tdata(push_tdata),
      .m_push_axis_tkeep(push_tkeep),
      .m_push_axis_tlast(push_tlast),
      .m_push_axis_tuser(push_tuser),
      .m_push_axis_dtype(push_dtype),
      .m_push_axis_exponent(push_exponent),
      .m_push_axis_block(push_block),
      .m_push_axis_tvalid(push_tvalid),
      .m_push_axis_tready(push_tready),
      .s_push_completion(push_completion),
      .s_push_completion_valid(push_completion_valid),
      .s_push_completion_ready(push_completion_ready),
      .m_pull_job(pull_job),
      .m_pull_job_valid(pull_job_valid),
      .m_pull_job_ready(pull_job_ready),
      .s_pull_axis_tdata(pull_tdata),
      .s_pull_axis_tkeep(pull_tkeep),
      .s_pull_axis_tvalid(pull_tvalid),
      .s_pull_axis_tready(pull_tready),
      .pull_data_done,
      .pull_data_error,
      .pull_data_unmapped,
      .s_pull_completion(pull_completion),
      .s_pull_completion_valid(pull_completion_valid),
      .s_pull_completion_ready(pull_completion_ready),
      `AXI_WRITE_CONNECT(m_axi, m_axi),
      `AXI_READ_CONNECT(m_axi, m_axi),
      .events
  );

  push_path #(
      .VECTOR_BYTES(VECTOR_BYTES),
      .CONVERT(PUSH_CONVERT),
      .STAGES(STAGES),
      .BLOCK(BLOCK),
      .BLOCK_BEATS(BLOCK_BEATS)
  ) push (
      .clk,
      .rst,
      .headroom(push_headroom),
      .pairs,
      .full,
      .slots,
      .s_job(push_job),
      .s_job_valid(push_job_valid),
      .s_job_ready(push_job_ready),
      .s_axis_tdata(push_tdata),
      .s_axis_tkeep(push_tkeep),
      .s_axis_tlast(push_tlast),
      .s_axis_tuser(push_tuser),
      .s_axis_dtype(push_dtype),
      .s_axis_exponent(push_exponent),
      .s_axis_block(push_block),
      .s_axis_tvalid(push_tvalid),
      .s_axis_tready(push_tready),
      .agreed,
      .agreed_valid,
      `AXIS_VECTOR_CONNECT(m_axis, m_axis),
      .m_completion(push_completion),
      .m_completion_valid(push_completion_valid),
      .m_completion_ready(push_completion_ready),
      .open(push_open)
  );

  pull_path #(.VECTOR_BYTES(VECTOR_BYTES), .CONVERT(PULL_CONVERT), .STAGES(STAGES)) pull (
      .clk,
      .rst,
      .headroom(pull_headroom),
      .pairs,
      .s_job(pull_job),
      .s_job_valid(pull_job_valid),
      .s_job_ready(pull_job_ready),
      `AXIS_VECTOR_CONNECT(s_axis, s_axis),
      .agreed,
      .agreed_valid,
      .m_axis_tdata(pull_tdata),
      .m_axis_tkeep(pull_tkeep),
      .m_axis_tvalid(pull_tvalid),
      .m_axis_tready(pull_tready),
      .data_done(pull_data_done),
      .data_error(pull_data_error),
      .data_unmapped(pull_data_unmapped),
      .m_completion(pull_completion),
      .m_completion_valid(pull_completion_valid),
      .m_completion_ready(pull_completion_ready),
      .waits_for_request(stalls.vector_waits),
      .waits_for_vector(stalls.pull_waits)
  );

  assign stalls.push_memory    = push_open && !push_tvalid && !m_axis_tvalid;
  assign stalls.push_transport = m_axis_tvalid && !m_axis_tready;
  assign stalls.pull_memory    = pull_tvalid && !pull_tready;

  axis_check #(.USER_WIDTH(2)) check_push (
      .clk,
      .rst,
      .tdata(push_tdata),
      .tkeep(push_tkeep),
      .tlast(push_tlast),
      .tuser(push_tuser),
      .tvalid(push_tvalid),
      .tready(push_tready)
  );
  stream_check #(.WIDTH(513 + $bits(tx_meta_t))) check_tx (
      .clk,
      .rst,
      .data({m_axis_tdata, m_axis_tlast, m_axis_tuser}),
      .valid(m_axis_tvalid),
      .ready(m_axis_tready)
  );
  stream_check #(.WIDTH(513 + $bits(rx_meta_t))) check_rx (
      .clk,
      .rst,
      .data({s_axis_tdata, s_axis_tlast, s_axis_tuser}),
      .valid(s_axis_tvalid),
      .ready(s_axis_tready)
  );
  stream_check #(.WIDTH(576)) check_pull (
      .clk,
      .rst,
      .data({pull_tdata, pull_tkeep}),
      .valid(pull_tvalid),
      .ready(pull_tready)
  );
  stream_check #(.WIDTH(PhysicalBits + 8)) check_ar (
      .clk,
      .rst,
      .data({m_axi_araddr, m_axi_arlen}),
      .valid(m_axi_arvalid),
      .ready(m_axi_arready)
  );
  stream_check #(.WIDTH(PhysicalBits + 8)) check_aw (
      .clk,
      .rst,
      .data({m_axi_awaddr, m_axi_awlen}),
      .valid(m_axi_awvalid),
      .ready(m_axi_awready)
  );
  stream_check #(.WIDTH(512 + 64 + 1)) check_w (
      .clk,
      .rst,
      .data({m_axi_wdata, m_axi_wstrb, m_axi_wlast}),
      .valid(m_axi_wvalid),
      .ready(m_axi_wready)
  );

endmodule : host_datapath
