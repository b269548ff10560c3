// host_access as cocotb wants it: a whole AXI4 master, requests and jobs field by field, one TLB fill port.
module host_access_axi
  import catchment_wire_pkg::*;
  import hostif_pkg::*;
(
    input  logic         clk,
    input  logic         rst,
    input  logic         hold,
    output logic         idle,

    input  logic [63:0]  request_vaddr,
    input  logic [31:0]  request_len,
    input  logic [63:0]  request_completion,
    input  logic [7:0]   request_dtype,
    input  logic [15:0]  request_tag,
    input  logic         push_ring,
    input  logic         pull_ring,
    output logic [2:0]   push_free,
    output logic [2:0]   pull_free,

    input  logic         fill_valid,
    output logic         fill_ready,
    input  vpn_t         fill_vpn,
    input  ppn_t         fill_ppn,
    input  logic         fill_present,

    // [0]: push, [1]: pull; a job is taken and completed by whoever drives these
    output logic [7:0]   job_status[2],
    output logic [63:0]  job_completion[2],
    output logic [31:0]  job_len[2],
    output logic [15:0]  job_tag[2],
    output logic [31:0]  job_started[2],
    output logic [1:0]   job_valid,
    input  logic [1:0]   job_ready,
    input  logic [7:0]   done_status[2],
    input  logic [63:0]  done_completion[2],
    input  logic [31:0]  done_bytes[2],
    input  logic [15:0]  done_tag[2],
    input  logic [31:0]  done_started[2],
    input  logic [1:0]   done_valid,
    output logic [1:0]   done_ready,

    output logic [511:0] m_axis_tdata,
    output logic [63:0]  m_axis_tkeep,
    output logic         m_axis_tlast,
    output logic [1:0]   m_axis_tuser,
    output logic         m_axis_tvalid,
    input  logic         m_axis_tready,
    input  logic [511:0] s_axis_tdata,
    input  logic [63:0]  s_axis_tkeep,
    input  logic         s_axis_tvalid,
    output logic         s_axis_tready,
    output logic         pull_data_done,
    output logic         pull_data_error,
    output logic         pull_data_unmapped,

    output logic [3:0]   seen,  // {pull unanswerable, push unanswerable, pull refused, push refused}
    output logic [1:0]   missed,
    output logic         bus_error,
    output logic         recorded,

    output logic         m_axi_awid,
    output physical_t    m_axi_awaddr,
    output logic [7:0]   m_axi_awlen,
    output logic [2:0]   m_axi_awsize,
    output logic [1:0]   m_axi_awburst,
    output logic         m_axi_awvalid,
    input  logic         m_axi_awready,
    output logic [511:0] m_axi_wdata,
    output logic [63:0]  m_axi_wstrb,
    output logic         m_axi_wlast,
    output logic         m_axi_wvalid,
    input  logic         m_axi_wready,
    input  logic         m_axi_bid,
    input  logic [1:0]   m_axi_bresp,
    input  logic         m_axi_bvalid,
    output logic         m_axi_bready,
    output logic         m_axi_arid,
    output physical_t    m_axi_araddr,
    output logic [7:0]   m_axi_arlen,
    output logic [2:0]   m_axi_arsize,
    output logic [1:0]   m_axi_arburst,
    output logic         m_axi_arvalid,
    input  logic         m_axi_arready,
    input  logic         m_axi_rid,
    input  logic [511:0] m_axi_rdata,
    input  logic [1:0]   m_axi_rresp,
    input  logic         m_axi_rlast,
    input  logic         m_axi_rvalid,
    output logic         m_axi_rready
);

  request_t    request;
  job_t        job [2];
  completion_t done[2];
  host_events_t events;

  assign request = '{
          vaddr: request_vaddr,
          len: request_len,
          cmpt_ptr: request_completion,
          dtype: data_type_t'(request_dtype),
          exponent: 8'd0,
          block: 1'b0,
          tag: request_tag,
          started: 32'd0
      };

  for (genvar i = 0; i < 2; i++) begin : gen_way
    assign job_status[i]     = job[i].status;
    assign job_completion[i] = job[i].completion;
    assign job_len[i]        = job[i].len;
    assign job_tag[i]        = job[i].tag;
    assign job_started[i]    = job[i].started;

    always_comb begin
      done[i]         = '0;
      done[i].address = done_completion[i];
      done[i].status  = status_t'(done_status[i]);
      done[i].tag     = done_tag[i];
      done[i].bytes   = done_bytes[i];
      done[i].started = done_started[i];
    end
  end

  assign m_axi_awid    = 1'b0;
  assign m_axi_awsize  = 3'd6;
  assign m_axi_awburst = 2'b01;
  assign m_axi_arid    = 1'b0;
  assign m_axi_arsize  = 3'd6;
  assign m_axi_arburst = 2'b01;

  assign seen      = {events.pull_unanswerable, events.push_unanswerable, events.pull_refused, events.push_refused};
  assign missed    = {events.pull_missed, events.push_missed};
  assign bus_error = events.bus_error;
  assign recorded  = events.done;

  logic [31:0] now_reg;
  always_ff @(posedge clk) now_reg <= rst ? 32'd0 : now_reg + 32'd1;

  host_access #(.QUEUE_DEPTH(4), .TLB_ENTRIES(8), .READ_BEATS(64)) dut (
      .clk,
      .rst,
      .hold,
      .idle,
      .now(now_reg),
      .push_request(request),
      .push_ring,
      .push_free,
      .push_types(ByteTypes | LaneTypes),
      .block_types('0),
      .pull_request(request),
      .pull_ring,
      .pull_free,
      .pull_types(ByteTypes | LaneTypes),
      .fill_valid,
      .fill_ready,
      .fill_vpn,
      .fill_ppn,
      .fill_present,
      .m_push_job(job[0]),
      .m_push_job_valid(job_valid[0]),
      .m_push_job_ready(job_ready[0]),
      .m_push_axis_tdata(m_axis_tdata),
      .m_push_axis_tkeep(m_axis_tkeep),
      .m_push_axis_tlast(m_axis_tlast),
      .m_push_axis_tuser(m_axis_tuser),
      .m_push_axis_dtype(),
      .m_push_axis_exponent(),
      .m_push_axis_block(),
      .m_push_axis_tvalid(m_axis_tvalid),
      .m_push_axis_tready(m_axis_tready),
      .s_push_completion(done[0]),
      .s_push_completion_valid(done_valid[0]),
      .s_push_completion_ready(done_ready[0]),
      .m_pull_job(job[1]),
      .m_pull_job_valid(job_valid[1]),
      .m_pull_job_ready(job_ready[1]),
      .s_pull_axis_tdata(s_axis_tdata),
      .s_pull_axis_tkeep(s_axis_tkeep),
      .s_pull_axis_tvalid(s_axis_tvalid),
      .s_pull_axis_tready(s_axis_tready),
      .pull_data_done,
      .pull_data_error,
      .pull_data_unmapped,
      .s_pull_completion(done[1]),
      .s_pull_completion_valid(done_valid[1]),
      .s_pull_completion_ready(done_ready[1]),
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
      .events
  );

  wire unused = &{1'b0, m_axi_bid, m_axi_rid};

endmodule : host_access_axi
