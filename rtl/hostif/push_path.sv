// Turns memory beats into the transport's vectors: converts their format (LuWu, section 3.2.2), cuts them into vectors,
// and completes the request once the transport has the last of them: then the buffer is free again.
`include "ports.svh"

module push_path
  import catchment_wire_pkg::*;
  import format_pkg::*;
  import hostif_pkg::*;
  import transport_pkg::*;
#(
    parameter int unsigned VECTOR_BYTES = 256,
    // 0: only integers and bytes, no converter
    parameter bit CONVERT = 1'b1,
    // number of registers in a converter's lane
    parameter int unsigned STAGES = 3,
    // whether messages may be block-scaled, which takes CONVERT, and the buffer that it takes
    parameter bit BLOCK = 1'b1,
    parameter int unsigned BLOCK_BEATS = 4096
) (
    input  logic                    clk,
    input  logic                    rst,
    // headroom h = ceil(log2 workers)
    input  logic [HeadroomBits-1:0] headroom,
    // floats go to packed lanes; the workers are 2^h
    input  logic                    pairs,
    input  logic                    full,
    // T
    input  logic [20:0]             slots,

    // every request, in order, before its beats; one that was refused has none
    input  job_t                    s_job,
    input  logic                    s_job_valid,
    output logic                    s_job_ready,

    input  logic [511:0]            s_axis_tdata,
    input  logic [63:0]             s_axis_tkeep,
    input  logic                    s_axis_tlast,
    // {memory answered with an error, the page was gone}
    input  logic [1:0]              s_axis_tuser,
    // of this beat's request
    input  data_type_t              s_axis_dtype,
    input  logic signed [7:0]       s_axis_exponent,
    input  logic                    s_axis_block,
    input  logic                    s_axis_tvalid,
    output logic                    s_axis_tready,

    // high for a clock: the workers have agreed on the exponent of the next vector
    input  logic signed [7:0]       agreed,
    input  logic                    agreed_valid,

    `AXIS_VECTOR_OUT_PORTS(m_axis, tx_meta_t),

    output completion_t             m_completion,
    output logic                    m_completion_valid,
    input  logic                    m_completion_ready,

    // a request is under way
    output logic                    open
);

  localparam int unsigned Lanes = BeatBits / LaneBits;
  // requests whose beats are on their way
  localparam int unsigned Jobs = 32;

  // ---- requests on their way ------------------------------------------------------------------------------
  job_t job;
  logic job_valid;
  logic job_done;

  sync_fifo #(.WIDTH($bits(job_t)), .DEPTH(Jobs), .RAM_STYLE("distributed")) jobs (
      .clk,
      .rst,
      .s_data(s_job),
      .s_valid(s_job_valid),
      .s_ready(s_job_ready),
      .m_data(job),
      .m_valid(job_valid),
      .m_ready(job_done),
      .level()
  );

  // ---- errors of a request's beats, beside the converter -------------------------------------------------------
  logic [1:0] fault_reg;
  logic [1:0] fault;
  logic       fault_room;
  logic       fault_valid;
  logic       enter_ready;

  wire enters = s_axis_tvalid && s_axis_tready;

  assign s_axis_tready = enter_ready && fault_room;

  always_ff @(posedge clk) begin
    if (rst) fault_reg <= '0;
    else if (enters) fault_reg <= s_axis_tlast ? '0 : fault_reg | s_axis_tuser;
  end

  sync_fifo #(.WIDTH(2), .DEPTH(Jobs), .RAM_STYLE("distributed")) faults (
      .clk,
      .rst,
      .s_data(fault_reg | s_axis_tuser),
      .s_valid(enters && s_axis_tlast),
      .s_ready(fault_room),
      .m_data(fault),
      .m_valid(fault_valid),
      .m_ready(job_done && job.status == STATUS_OK),
      .level()
  );

  // ---- floats to lanes ------------------------------------------------------------------------------------------
  logic [511:0]       lanes;
  logic               lanes_last;
  logic [4*Lanes-1:0] lanes_cut;  // {cut, not finite}
  logic               lanes_valid;
  logic               lanes_ready;
  vector_scale_t      scale;
  logic               scale_valid;
  logic               scale_ready;
  // the message's need, known after its last beat has entered
  logic signed [7:0]  needed;
  logic               needed_valid;

  if (CONVERT) begin : gen_convert
    format_t           as;
    logic [63:0]       lanes_keep;
    logic [511:0]      value;
    logic [31:0]       value_keep;
    logic              value_last;
    data_type_t        value_dtype;
    logic signed [7:0] value_exponent;
    logic              value_valid;
    logic              value_ready;
    logic              need_valid;
    logic signed [7:0] need;
    logic signed [7:0] most;
    logic              need_last;
    logic              need_block;
    logic              needed_room;
    logic [31:0]       keep_of_two;
    logic [63:0]       value_keep_bytes;

    always_comb begin
      as.dtype    = value_dtype == DATA_TYPE_BYTES ? DATA_TYPE_INT32 : value_dtype;
      as.exponent = value_exponent;
      as.headroom = headroom;
      as.pairs    = pairs;
      as.full     = full;
      for (int unsigned i = 0; i < 32; i++) begin
        keep_of_two[i]           = s_axis_tkeep[2*i];
        value_keep_bytes[2*i+:2] = {2{value_keep[i]}};
      end
    end

    exponent_meter #(.VECTOR_BYTES(VECTOR_BYTES)) meter (
        .clk,
        .rst,
        .data(s_axis_tdata),
        .dtype(s_axis_dtype),
        .pairs,
        .last(s_axis_tlast),
        .tag(s_axis_block),
        .valid(enters),
        .m_valid(need_valid),
        .m_exponent(need),
        .m_most(most),
        .m_last(need_last),
        .m_tag(need_block)
    );

    sync_fifo #(.WIDTH(8), .DEPTH(Jobs), .RAM_STYLE("distributed")) most_needed (
        .clk,
        .rst,
        .s_data(most),
        .s_valid(need_valid && need_last),
        .s_ready(needed_room),
        .m_data(needed),
        .m_valid(needed_valid),
        .m_ready(job_done && job.status == STATUS_OK),
        .level()
    );

`ifndef SYNTHESIS
    always_ff @(posedge clk) if (!rst) a_needed : assert (!need_valid || needed_room);
`else
    wire unused_room = &{1'b0, needed_room};
`endif

    if (BLOCK) begin : gen_block
      block_scaler #(.VECTOR_BYTES(VECTOR_BYTES), .BUFFER_BEATS(BLOCK_BEATS)) scaler (
          .clk,
          .rst,
          .slots,
          .pairs,
          .s_axis_tdata,
          .s_axis_tkeep(keep_of_two),
          .s_axis_tlast,
          .s_axis_dtype,
          .s_axis_block,
          .s_axis_exponent,
          .s_axis_tvalid(s_axis_tvalid && fault_room),
          .s_axis_tready(enter_ready),
          .need,
          .need_last,
          .need_valid(need_valid && need_block),
          .agreed,
          .agreed_valid,
          .m_axis_tdata(value),
          .m_axis_tkeep(value_keep),
          .m_axis_tlast(value_last),
          .m_axis_dtype(value_dtype),
          .m_axis_exponent(value_exponent),
          .m_axis_tvalid(value_valid),
          .m_axis_tready(value_ready),
          .m_scale(scale),
          .m_scale_valid(scale_valid),
          .m_scale_ready(scale_ready)
      );
    end else begin : gen_shared
      assign {value, value_keep, value_last} = {s_axis_tdata, keep_of_two, s_axis_tlast};
      assign {value_dtype, value_exponent}   = {s_axis_dtype, s_axis_exponent};
      assign value_valid                     = s_axis_tvalid && fault_room;
      assign enter_ready                     = value_ready;
      assign scale                           = '0;
      assign scale_valid                     = 1'b0;

      wire unused_block = &{1'b0, slots, agreed, agreed_valid, scale_ready, need, need_block};
    end

    float_to_int #(.STAGES(STAGES)) convert (
        .clk,
        .rst,
        .s_axis_tdata(value),
        .s_axis_tkeep(value_keep_bytes),
        .s_axis_tlast(value_last),
        .s_axis_tuser(as),
        .s_axis_tvalid(value_valid),
        .s_axis_tready(value_ready),
        .m_axis_tdata(lanes),
        .m_axis_tkeep(lanes_keep),
        .m_axis_tlast(lanes_last),
        .m_axis_tuser(lanes_cut),
        .m_axis_tvalid(lanes_valid),
        .m_axis_tready(lanes_ready)
    );

    wire unused = &{1'b0, lanes_keep, s_axis_tkeep};
  end else begin : gen_pass
    // A register, as the converter has: a message's fault is known only after its last beat has entered.
    skid_buffer #(.WIDTH(513)) pass (
        .clk,
        .rst,
        .s_data({s_axis_tdata, s_axis_tlast}),
        .s_valid(s_axis_tvalid && fault_room),
        .s_ready(enter_ready),
        .m_data({lanes, lanes_last}),
        .m_valid(lanes_valid),
        .m_ready(lanes_ready)
    );

    assign lanes_cut    = '0;
    assign scale        = '0;
    assign scale_valid  = 1'b0;
    assign needed       = '0;
    assign needed_valid = 1'b1;

    wire unused = &{1'b0, s_axis_tkeep, s_axis_dtype, s_axis_exponent, s_axis_block, headroom, pairs, full, slots, agreed,
                    agreed_valid, scale_ready};
  end

  // ---- vectors ----------------------------------------------------------------------------------------------------
  // Nothing enters a vector before its request is known, nor leaves at its end before the completion before has gone.
  logic        cut_valid;
  logic        cut_ready;
  logic        out_ready;
  logic        out_valid;
  logic        announces;
  completion_t completion_reg;
  logic        completion_valid_reg;
  logic        counting_reg;  // a request has ended, and the counts of its last beat are added up

  assign open = job_valid && job.status == STATUS_OK;

  assign cut_valid   = lanes_valid && open;
  assign lanes_ready = cut_ready && open;

  vector_cutter #(.VECTOR_BYTES(VECTOR_BYTES)) cutter (
      .clk,
      .rst,
      .dtype(job.dtype),
      .exponent(job.exponent),
      .end_bytes(job.len[5:0]),
      .block(job.block && open),
      .s_scale(scale),
      .s_scale_valid(scale_valid),
      .s_scale_ready(scale_ready),
      .s_axis_tdata(lanes),
      .s_axis_tlast(lanes_last),
      .s_axis_tuser(|lanes_cut),
      .s_axis_tvalid(cut_valid),
      .s_axis_tready(cut_ready),
      .announces,
      .m_axis_tdata,
      .m_axis_tlast,
      .m_axis_tuser,
      .m_axis_tvalid(out_valid),
      .m_axis_tready(out_ready)
  );

  wire final_beat = m_axis_tlast && m_axis_tuser.last && !announces;
  wire busy       = completion_valid_reg || counting_reg;
  wire may_move   = !final_beat || (!busy && fault_valid && needed_valid);

  assign m_axis_tvalid = out_valid && may_move;
  assign out_ready     = m_axis_tready && may_move;

  wire sent    = m_axis_tvalid && m_axis_tready && final_beat;
  wire refused = job_valid && job.status != STATUS_OK && !busy;

  assign job_done = sent || refused;

  // ---- counts and completion -----------------------------------------------------------------------------------
  // A beat's are counted in one clock and added in the next, so the completion comes a clock after its request's end.
  localparam int unsigned CountBits = $clog2(2 * Lanes + 1);

  logic [CountBits-1:0] saturated_beat_reg;
  logic [CountBits-1:0] nonfinite_beat_reg;
  logic [31:0]          saturated_reg;
  logic [31:0]          nonfinite_reg;
  logic                 cut_reg;      // of the message: a value was cut

  wire         lanes_move = lanes_valid && lanes_ready;
  wire [31:0]  saturated  = saturated_reg + 32'(saturated_beat_reg);
  wire [31:0]  nonfinite  = nonfinite_reg + 32'(nonfinite_beat_reg);

  assign m_completion       = completion_reg;
  assign m_completion_valid = completion_valid_reg;

  always_ff @(posedge clk) begin
    saturated_beat_reg <= lanes_move ? CountBits'($countones(lanes_cut[2*Lanes+:2*Lanes])) : '0;
    nonfinite_beat_reg <= lanes_move ? CountBits'($countones(lanes_cut[0+:2*Lanes])) : '0;
    if (job_done) begin
      completion_reg <= '{
          address: job.completion,
          status: refused ? job.status : fault[1] ? STATUS_BUS_ERROR : fault[0] ? STATUS_UNMAPPED_LATER : STATUS_OK,
          flags: !refused && (cut_reg || (lanes_move && |lanes_cut)) ? FLAG_SAT : 8'd0,
          tag: job.tag,
          bytes: refused ? 32'd0 : job.len,
          saturated: 32'd0,
          nonfinite: 32'd0,
          exponent: job.exponent,
          needed: refused ? 8'sd0 : needed,
          started: job.started
      };
    end
    if (counting_reg) begin
      completion_reg.saturated <= saturated;
      completion_reg.nonfinite <= nonfinite;
    end
    if (rst) begin
      completion_valid_reg <= 1'b0;
      counting_reg         <= 1'b0;
      cut_reg              <= 1'b0;
      saturated_reg        <= '0;
      nonfinite_reg        <= '0;
      saturated_beat_reg   <= '0;
      nonfinite_beat_reg   <= '0;
    end else begin
      counting_reg <= job_done;
      if (counting_reg) completion_valid_reg <= 1'b1;
      else if (m_completion_ready) completion_valid_reg <= 1'b0;
      if (sent) cut_reg <= 1'b0;
      else if (lanes_move && |lanes_cut) cut_reg <= 1'b1;
      saturated_reg <= counting_reg ? '0 : saturated;
      nonfinite_reg <= counting_reg ? '0 : nonfinite;
    end
  end

endmodule : push_path
