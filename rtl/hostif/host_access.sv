// The GPU access module of LuWu's Figure 7 (a CPU access module in an AggNIC): request queues, the TLB, the memory access
// controllers, the DMA engine, and completions.
//
//   push: queue -> segmenter -> read engine -> m_push_axis     pull: queue -> segmenter -> write engine <- s_pull_axis
//              \-> m_push_job                                             \-> m_pull_job
//   completions -> completion_writer -> write engine
`include "parameters.svh"
`include "ports.svh"

module host_access
  import catchment_wire_pkg::*;
  import hostif_pkg::*;
#(
    `ACCESS_PARAMETERS
) (
    input  logic                         clk,
    input  logic                         rst,
    // no new burst begins while `hold` is high; `idle` then says that none is under way
    input  logic                         hold,
    output logic                         idle,
    input  logic [31:0]                  now,

    input  request_t                     push_request,
    input  logic                         push_ring,
    output logic [$clog2(QUEUE_DEPTH):0] push_free,
    input  type_set_t                    push_types,
    // of either direction, which may be block-scaled now
    input  type_set_t                    block_types,
    input  request_t                     pull_request,
    input  logic                         pull_ring,
    output logic [$clog2(QUEUE_DEPTH):0] pull_free,
    input  type_set_t                    pull_types,

    input  logic                         fill_valid,
    output logic                         fill_ready,
    input  vpn_t                         fill_vpn,
    input  ppn_t                         fill_ppn,
    input  logic                         fill_present,

    output job_t                         m_push_job,
    output logic                         m_push_job_valid,
    input  logic                         m_push_job_ready,
    output logic [511:0]                 m_push_axis_tdata,
    output logic [63:0]                  m_push_axis_tkeep,
    output logic                         m_push_axis_tlast,
    // {memory answered with an error, the page was gone}
    output logic [1:0]                   m_push_axis_tuser,
    output data_type_t                   m_push_axis_dtype,
    output logic signed [7:0]            m_push_axis_exponent,
    output logic                         m_push_axis_block,
    output logic                         m_push_axis_tvalid,
    input  logic                         m_push_axis_tready,
    input  completion_t                  s_push_completion,
    input  logic                         s_push_completion_valid,
    output logic                         s_push_completion_ready,

    output job_t                         m_pull_job,
    output logic                         m_pull_job_valid,
    input  logic                         m_pull_job_ready,
    input  logic [511:0]                 s_pull_axis_tdata,
    input  logic [63:0]                  s_pull_axis_tkeep,
    input  logic                         s_pull_axis_tvalid,
    output logic                         s_pull_axis_tready,
    output logic                         pull_data_done,
    output logic                         pull_data_error,
    output logic                         pull_data_unmapped,
    input  completion_t                  s_pull_completion,
    input  logic                         s_pull_completion_valid,
    output logic                         s_pull_completion_ready,

    `AXI_WRITE_PORTS(m_axi),
    `AXI_READ_PORTS(m_axi),

    output host_events_t                 events
);

  // ---- TLB ------------------------------------------------------------------------------------------------
  logic [1:0] lookup_valid;
  logic [1:0] lookup_ready;
  vpn_t       lookup_vpn  [2];
  logic [1:0] result_valid;
  logic       result_hit;
  ppn_t       result_ppn;

  wire filled = fill_valid && fill_ready;

  tlb #(.ENTRIES(TLB_ENTRIES), .PORTS(2)) translations (
      .clk,
      .rst,
      .fill_valid,
      .fill_ready,
      .fill_vpn,
      .fill_ppn,
      .fill_present,
      .lookup_valid,
      .lookup_ready,
      .lookup_vpn,
      .result_valid,
      .result_hit,
      .result_ppn
  );

  // ---- push -----------------------------------------------------------------------------------------------
  request_t   push_head;
  logic       push_head_valid;
  logic       push_head_ready;
  segment_t   read_segment;
  logic       read_segment_valid;
  logic       read_segment_ready;
  logic       read_idle;

  request_queue #(.DEPTH(QUEUE_DEPTH)) pushes (
      .clk,
      .rst,
      .now,
      .request(push_request),
      .ring(push_ring),
      .refused(events.push_refused),
      .free(push_free),
      .m_request(push_head),
      .m_request_valid(push_head_valid),
      .m_request_ready(push_head_ready)
  );

  segmenter push_controller (
      .clk,
      .rst,
      .types(push_types),
      .block_types,
      .s_request(push_head),
      .s_request_valid(push_head_valid),
      .s_request_ready(push_head_ready),
      .m_job(m_push_job),
      .m_job_valid(m_push_job_valid),
      .m_job_ready(m_push_job_ready),
      .m_segment(read_segment),
      .m_segment_valid(read_segment_valid),
      .m_segment_ready(read_segment_ready),
      .lookup_valid(lookup_valid[0]),
      .lookup_ready(lookup_ready[0]),
      .lookup_vpn(lookup_vpn[0]),
      .result_valid(result_valid[0]),
      .result_hit,
      .result_ppn,
      .filled,
      .missed(events.push_missed),
      .missed_address(events.push_missed_address),
      .unanswerable(events.push_unanswerable)
  );

  // The job's fields stay while its segments leave.
  axi_read_engine #(
      .BURST_BEATS(BURST_BEATS),
      .BUFFER_BEATS(READ_BEATS),
      .USER_BITS($bits(data_type_t) + 9)
  ) read_engine (
      .clk,
      .rst,
      .hold,
      .idle(read_idle),
      .s_segment(read_segment),
      .s_segment_user({m_push_job.dtype, m_push_job.exponent, m_push_job.block}),
      .s_segment_valid(read_segment_valid),
      .s_segment_ready(read_segment_ready),
      `AXI_READ_CONNECT(m_axi, m_axi),
      .m_axis_tdata(m_push_axis_tdata),
      .m_axis_tkeep(m_push_axis_tkeep),
      .m_axis_tlast(m_push_axis_tlast),
      .m_axis_tuser({m_push_axis_tuser, m_push_axis_dtype, m_push_axis_exponent, m_push_axis_block}),
      .m_axis_tvalid(m_push_axis_tvalid),
      .m_axis_tready(m_push_axis_tready)
  );

  // ---- pull -----------------------------------------------------------------------------------------------
  request_t   pull_head;
  logic       pull_head_valid;
  logic       pull_head_ready;
  segment_t   write_segment;
  logic       write_segment_valid;
  logic       write_segment_ready;
  logic       write_idle;

  request_queue #(.DEPTH(QUEUE_DEPTH)) pulls (
      .clk,
      .rst,
      .now,
      .request(pull_request),
      .ring(pull_ring),
      .refused(events.pull_refused),
      .free(pull_free),
      .m_request(pull_head),
      .m_request_valid(pull_head_valid),
      .m_request_ready(pull_head_ready)
  );

  segmenter pull_controller (
      .clk,
      .rst,
      .types(pull_types),
      .block_types,
      .s_request(pull_head),
      .s_request_valid(pull_head_valid),
      .s_request_ready(pull_head_ready),
      .m_job(m_pull_job),
      .m_job_valid(m_pull_job_valid),
      .m_job_ready(m_pull_job_ready),
      .m_segment(write_segment),
      .m_segment_valid(write_segment_valid),
      .m_segment_ready(write_segment_ready),
      .lookup_valid(lookup_valid[1]),
      .lookup_ready(lookup_ready[1]),
      .lookup_vpn(lookup_vpn[1]),
      .result_valid(result_valid[1]),
      .result_hit,
      .result_ppn,
      .filled,
      .missed(events.pull_missed),
      .missed_address(events.pull_missed_address),
      .unanswerable(events.pull_unanswerable)
  );

  // ---- completions and the write side of the DMA engine ------------------------------------------------------
  physical_t                    record_address;
  logic [8*CompletionBytes-1:0] record;
  logic                         record_valid;
  logic                         record_ready;
  logic                         record_done;
  logic                         record_error;

  completion_writer completions (
      .clk,
      .rst,
      .now,
      .s_push(s_push_completion),
      .s_push_valid(s_push_completion_valid),
      .s_push_ready(s_push_completion_ready),
      .s_pull(s_pull_completion),
      .s_pull_valid(s_pull_completion_valid),
      .s_pull_ready(s_pull_completion_ready),
      .m_record_address(record_address),
      .m_record(record),
      .m_record_valid(record_valid),
      .m_record_ready(record_ready),
      .record_done,
      .record_error,
      .done(events.done),
      .done_lost(events.done_lost),
      .done_is_pull(events.done_is_pull),
      .done_status(events.done_status),
      .done_bytes(events.done_bytes),
      .done_saturated(events.done_saturated),
      .done_nonfinite(events.done_nonfinite),
      .done_latency(events.done_latency)
  );

  axi_write_engine #(
      .BURST_BEATS(BURST_BEATS),
      .BUFFER_BEATS(WRITE_BEATS)
  ) write_engine (
      .clk,
      .rst,
      .hold,
      .idle(write_idle),
      .s_segment(write_segment),
      .s_segment_valid(write_segment_valid),
      .s_segment_ready(write_segment_ready),
      .s_axis_tdata(s_pull_axis_tdata),
      .s_axis_tkeep(s_pull_axis_tkeep),
      .s_axis_tvalid(s_pull_axis_tvalid),
      .s_axis_tready(s_pull_axis_tready),
      .s_record_address(record_address),
      .s_record(record),
      .s_record_valid(record_valid),
      .s_record_ready(record_ready),
      `AXI_WRITE_CONNECT(m_axi, m_axi),
      .data_done(pull_data_done),
      .data_error(pull_data_error),
      .data_unmapped(pull_data_unmapped),
      .record_done,
      .record_error
  );

  assign idle = read_idle && write_idle;
  assign events.bus_error = (m_axi_rvalid && m_axi_rready && m_axi_rresp[1])
                         || (m_axi_bvalid && m_axi_bready && m_axi_bresp[1]);

endmodule : host_access
