// Turns the transport's vectors into memory beats: matches messages with pulls, trims them to their length, and
// converts them back (LuWu, section 3.2.2).  A message that does not fit its pull is dropped to its end and the pull
// fails; the beats that it lacks are made up without a byte kept, so that the write engine always gets what the
// segments promise.
`include "ports.svh"

module pull_path
  import catchment_wire_pkg::*;
  import format_pkg::*;
  import hostif_pkg::*;
  import transport_pkg::*;
#(
    parameter int unsigned VECTOR_BYTES = 256,
    // 0: only integers and bytes, no converter
    parameter bit CONVERT = 1'b1,
    // number of registers in a converter's lane
    parameter int unsigned STAGES = 3
) (
    input  logic                    clk,
    input  logic                    rst,
    // headroom h = ceil(log2 workers)
    input  logic [HeadroomBits-1:0] headroom,
    // sums have packed lanes
    input  logic                    pairs,

    // every request, in order; its segments wait for the beats
    input  job_t                    s_job,
    input  logic                    s_job_valid,
    output logic                    s_job_ready,

    `AXIS_VECTOR_IN_PORTS(s_axis, rx_meta_t),

    // high for a clock: the workers have agreed on the exponent of a vector that is to come
    output logic signed [7:0]       agreed,
    output logic                    agreed_valid,

    output logic [511:0]            m_axis_tdata,
    output logic [63:0]             m_axis_tkeep,
    output logic                    m_axis_tvalid,
    input  logic                    m_axis_tready,

    // high for a clock: memory has the beats of the oldest request
    input  logic                    data_done,
    input  logic                    data_error,
    input  logic                    data_unmapped,

    output completion_t             m_completion,
    output logic                    m_completion_valid,
    input  logic                    m_completion_ready,

    // a vector waits and no request takes it; a request waits and there is no vector
    output logic                    waits_for_request,
    output logic                    waits_for_vector
);

  // requests whose beats are on their way
  localparam int unsigned Jobs = 32;
  localparam int unsigned BeatCountBits = 27;
  localparam logic [31:0] VectorLanes = VECTOR_BYTES / 4;

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

  // ---- match a message with the request -----------------------------------------------------------------------
  typedef enum logic [1:0] {
    BEGIN,  // the request's message has not begun, or its announcements have not ended
    FILL,   // left_reg elements are missing
    SKIP    // to the end of the message: it does not fit, or the rest is padding of its last vector
  } state_t;

  state_t            state_reg;
  logic              first_beat_reg;  // of a vector
  logic [31:0]       left_reg;        // elements that the request still lacks
  status_t           status_reg;
  logic [31:0]       missing_reg;     // elements that the request lacked when skipping began
  logic              sat_reg;
  logic signed [7:0] exponent_reg;
  logic              announced_reg;   // the block-scaled message's announcements have come
  logic              loaded_reg;      // left_reg is the request's
  logic              ending_reg;      // the request has ended: its record is written, and it makes room for the next

  // Before the data of a block-scaled message come announcements; one without next_exp is of a worker that has none.
  wire current = loaded_reg && !ending_reg;
  wire good = current && job.status == STATUS_OK;
  wire before_data = good && job.block && state_reg == BEGIN && !announced_reg;
  wire announcement = before_data && s_axis_tuser.expv && !s_axis_tuser.foreign;
  wire unannounced = before_data && !s_axis_tuser.expv;

  wire bytes_pulled = job.dtype == DATA_TYPE_BYTES;
  wire floats_pulled = job.dtype != DATA_TYPE_BYTES && job.dtype != DATA_TYPE_INT32;
  wire floats_pushed = s_axis_tuser.dtype != DATA_TYPE_BYTES && s_axis_tuser.dtype != DATA_TYPE_INT32;

  logic [31:0] carried;    // elements in this vector
  logic [6:0]  per_beat;   // elements in a beat
  logic        misfit;
  status_t     misfit_status;

  assign carried  = bytes_pulled ? 32'(s_axis_tuser.bytes) : pairs ? 2 * VectorLanes : VectorLanes;
  assign per_beat = bytes_pulled ? 7'd64 : pairs ? 7'd32 : 7'd16;

  always_comb begin
    misfit        = 1'b0;
    misfit_status = STATUS_LENGTH_MISMATCH;
    if (s_axis_tuser.last) begin
      // Padding looks like data, so sums are compared by whole vectors.
      misfit = left_reg > carried || (bytes_pulled && carried > left_reg);
    end else begin
      misfit = left_reg <= carried || (bytes_pulled && carried != 32'(VECTOR_BYTES));
    end
    if (!misfit && floats_pulled && !floats_pushed) begin
      misfit        = 1'b1;
      misfit_status = STATUS_TYPE_MISMATCH;
    end
    if (!misfit && floats_pulled && state_reg == FILL && !job.block && s_axis_tuser.exp != exponent_reg) begin
      misfit        = 1'b1;
      misfit_status = STATUS_EXPONENT_MISMATCH;
    end
    if (unannounced) begin
      misfit        = 1'b1;
      misfit_status = STATUS_EXPONENT_MISMATCH;
    end
    if (s_axis_tuser.foreign) begin
      misfit        = 1'b1;
      misfit_status = STATUS_LANES_MISMATCH;
    end
  end

  // ---- trim -----------------------------------------------------------------------------------------------------
  logic [511:0] trim_data;
  logic [63:0]  trim_keep;
  logic         trim_last;
  logic         trim_valid;
  logic         trim_ready;
  logic         record_room;
  logic         total_room;

  wire drop = good && (state_reg == SKIP || announcement);
  wire breaks = first_beat_reg && misfit;
  wire room = record_room && total_room;
  wire completes = left_reg <= 32'(per_beat);

  assign trim_valid    = good && room && !drop && s_axis_tvalid;
  assign s_axis_tready = drop ? room : good && room && trim_ready;
  assign trim_data     = s_axis_tdata;
  assign trim_last     = breaks || completes;

  always_comb begin
    for (int unsigned i = 0; i < 64; i++) trim_keep[i] = 1'b1;
    if (breaks) trim_keep = '0;
    else if (completes) begin
      for (int unsigned i = 0; i < 64; i++) begin
        trim_keep[i] = (bytes_pulled ? 7'(i) : pairs ? 7'(i / 2) : 7'(i / 4)) < left_reg[6:0];
      end
    end
  end

  wire takes = s_axis_tvalid && s_axis_tready;
  wire unused = &{1'b0, job.exponent};
  wire message_ends = takes && s_axis_tlast && s_axis_tuser.last && !announcement;
  wire refused = current && job.status != STATUS_OK && room;

  assign job_done = ending_reg;

  assign agreed       = s_axis_tuser.next_exp;
  assign agreed_valid = takes && first_beat_reg && job.block && s_axis_tuser.expv;

  assign waits_for_request = s_axis_tvalid && !job_valid;
  assign waits_for_vector  = good && !s_axis_tvalid;

  logic [31:0] left_after;
  status_t     status_after;
  logic [31:0] missing_after;
  logic signed [7:0] exponent_after;

  always_comb begin
    left_after    = left_reg;
    status_after  = state_reg == BEGIN ? STATUS_OK : status_reg;
    missing_after = state_reg == BEGIN ? 32'd0 : missing_reg;
    // A block-scaled message's is the largest of its vectors'.
    exponent_after = job.block && state_reg != BEGIN && exponent_reg > s_axis_tuser.exp ? exponent_reg : s_axis_tuser.exp;
    if (state_reg != SKIP) begin
      if (breaks) begin
        status_after  = misfit_status;
        missing_after = left_reg;
      end else begin
        left_after = completes ? 32'd0 : left_reg - 32'(per_beat);
      end
    end
  end

  always_ff @(posedge clk) begin
    if (!loaded_reg) left_reg <= job.len >> element_shift(job.dtype);
    if (takes) begin
      if (!announcement) left_reg <= left_after;
      status_reg   <= status_after;
      missing_reg  <= missing_after;
      exponent_reg <= exponent_after;
      sat_reg      <= s_axis_tuser.sat || (sat_reg && state_reg != BEGIN);
    end
    if (rst) begin
      state_reg      <= BEGIN;
      first_beat_reg <= 1'b1;
      announced_reg  <= 1'b0;
      loaded_reg     <= 1'b0;
      ending_reg     <= 1'b0;
    end else begin
      loaded_reg <= job_valid && !ending_reg;
      ending_reg <= message_ends || refused;
    end
    if (!rst && takes) begin
      first_beat_reg <= s_axis_tlast;
      if (message_ends) state_reg <= BEGIN;
      else if (!drop) state_reg <= trim_last ? SKIP : FILL;
      if (message_ends) announced_reg <= 1'b0;
      else if (announcement && s_axis_tlast && s_axis_tuser.last) announced_reg <= 1'b1;
    end
  end

  // ---- lanes to floats --------------------------------------------------------------------------------------
  logic [511:0] value;
  logic [63:0]  value_keep;
  logic         value_last;
  logic         value_valid;
  logic         value_ready;

  if (CONVERT) begin : gen_convert
    // Bytes of a lane are kept together there; where a message of bytes ends goes beside it.
    format_t     as;
    logic [63:0] lane_keep;
    logic        bytes_room;
    logic        tail_valid;
    logic        tail_is_bytes;
    logic        tail_breaks;
    logic [63:0] whole_keep;
    logic        convert_ready;
    logic [1:0]  tail;

    always_comb begin
      as.dtype    = bytes_pulled ? DATA_TYPE_INT32 : job.dtype;
      as.exponent = s_axis_tuser.exp;
      as.headroom = headroom;
      as.pairs    = pairs && !bytes_pulled;
      as.full     = 1'b0;  // says nothing about the way back
      lane_keep   = trim_keep;
      if (bytes_pulled) for (int unsigned i = 0; i < 16; i++) lane_keep[4*i+:4] = {4{trim_keep[4*i]}};
      // A beat keeps something: what ends a broken message is one lane, which is taken out again behind.
      if (breaks) lane_keep[3:0] = '1;
    end

    assign trim_ready = convert_ready && bytes_room;

    int_to_float #(.STAGES(STAGES)) convert (
        .clk,
        .rst,
        .s_axis_tdata(trim_data),
        .s_axis_tkeep(lane_keep),
        .s_axis_tlast(trim_last),
        .s_axis_tuser(as),
        .s_axis_tvalid(trim_valid && bytes_room),
        .s_axis_tready(convert_ready),
        .m_axis_tdata(value),
        .m_axis_tkeep(whole_keep),
        .m_axis_tlast(value_last),
        .m_axis_tvalid(value_valid),
        .m_axis_tready(value_ready)
    );

    // The last lane of bytes may be partly kept: how many of its bytes, 0 for all.
    sync_fifo #(.WIDTH(4), .DEPTH(Jobs), .RAM_STYLE("distributed")) tails (
        .clk,
        .rst,
        .s_data({breaks, bytes_pulled, left_reg[1:0]}),
        .s_valid(trim_valid && trim_ready && trim_last),
        .s_ready(bytes_room),
        .m_data({tail_breaks, tail_is_bytes, tail}),
        .m_valid(tail_valid),
        .m_ready(value_valid && value_ready && value_last),
      .level()
    );

    logic [67:0] next_keep;  // one lane further there is none

    assign next_keep = {4'd0, whole_keep};

    always_comb begin
      value_keep = whole_keep;
      if (value_last && tail_breaks) begin
        // Beside it may be a half beat of 16-bit elements that came before.
        value_keep = whole_keep[32] ? {32'd0, {32{1'b1}}} : '0;
      end else if (value_last && tail_is_bytes && tail != 2'd0) begin
        for (int unsigned i = 0; i < 64; i++) begin
          // the last kept lane is the one whose next is not kept
          if (!next_keep[i/4*4+4] && 2'(i % 4) >= tail) value_keep[i] = 1'b0;
        end
      end
    end

    wire unused_valid = &{1'b0, tail_valid};
  end else begin : gen_pass
    skid_buffer #(.WIDTH(512 + 64 + 1)) pass (
        .clk,
        .rst,
        .s_data({trim_data, trim_keep, trim_last}),
        .s_valid(trim_valid),
        .s_ready(trim_ready),
        .m_data({value, value_keep, value_last}),
        .m_valid(value_valid),
        .m_ready(value_ready)
    );

    wire unused_headroom = &{1'b0, headroom, pairs};
  end

  // ---- exactly the beats of the request -------------------------------------------------------------------------
  logic [BeatCountBits-1:0] total;
  logic                     total_valid;
  logic [BeatCountBits-1:0] beat_reg;
  logic                     filling_reg;

  wire out_moves = m_axis_tvalid && m_axis_tready;
  wire out_last = beat_reg == total - 1'b1;

  sync_fifo #(.WIDTH(BeatCountBits), .DEPTH(Jobs), .RAM_STYLE("distributed")) totals (
      .clk,
      .rst,
      .s_data(BeatCountBits'((33'(job.len) + 33'd63) >> 6)),
      .s_valid(trim_valid && trim_ready && trim_last),
      .s_ready(total_room),
      .m_data(total),
      .m_valid(total_valid),
      .m_ready(out_moves && out_last && (filling_reg || value_last)),
      .level()
  );

  assign m_axis_tvalid = filling_reg || (value_valid && (!value_last || total_valid));
  // Zeros, and not what comes next: a beat that waits must stay as it is.
  assign m_axis_tdata  = filling_reg ? '0 : value;
  assign m_axis_tkeep  = filling_reg ? '0 : value_keep;
  assign value_ready   = m_axis_tready && !filling_reg && (!value_last || total_valid);

  always_ff @(posedge clk) begin
    if (rst) begin
      beat_reg    <= '0;
      filling_reg <= 1'b0;
    end else if (out_moves) begin
      if (filling_reg || value_last) begin
        beat_reg    <= out_last ? '0 : beat_reg + 1'b1;
        filling_reg <= !out_last;
      end else begin
        beat_reg <= beat_reg + 1'b1;
      end
    end
  end

  // ---- completions, in order, after the data ------------------------------------------------------------------------
  completion_t record;
  completion_t record_head;
  logic        record_valid;
  logic        record_moves_data;
  logic        fault_valid;
  logic        fault_room;
  logic        fault_error;
  logic        fault_unmapped;

  wire moved = job.status == STATUS_OK;  // the request was not refused

  always_comb begin
    record = '{
        address: job.completion,
        status: moved ? status_reg : job.status,
        flags: moved && sat_reg ? FLAG_SAT : 8'd0,
        tag: job.tag,
        bytes: moved ? job.len - (missing_reg << element_shift(job.dtype)) : 32'd0,
        saturated: 32'd0,
        nonfinite: 32'd0,
        exponent: exponent_reg,
        needed: '0,
        started: job.started
    };
  end

  sync_fifo #(.WIDTH($bits(completion_t) + 1), .DEPTH(Jobs), .RAM_STYLE("distributed")) records (
      .clk,
      .rst,
      .s_data({record, moved}),
      .s_valid(job_done),
      .s_ready(record_room),
      .m_data({record_head, record_moves_data}),
      .m_valid(record_valid),
      .m_ready(m_completion_valid && m_completion_ready),
      .level()
  );

  sync_fifo #(.WIDTH(2), .DEPTH(2 * Jobs), .RAM_STYLE("distributed")) faults (
      .clk,
      .rst,
      .s_data({data_error, data_unmapped}),
      .s_valid(data_done),
      .s_ready(fault_room),
      .m_data({fault_error, fault_unmapped}),
      .m_valid(fault_valid),
      .m_ready(record_moves_data && m_completion_valid && m_completion_ready),
      .level()
  );

  assign m_completion_valid = record_valid && (!record_moves_data || fault_valid);

  always_comb begin
    m_completion = record_head;
    if (record_moves_data && record_head.status == STATUS_OK) begin
      if (fault_error) m_completion.status = STATUS_BUS_ERROR;
      else if (fault_unmapped) m_completion.status = STATUS_UNMAPPED_LATER;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk) if (!rst) a_faults : assert (!data_done || fault_room);
`else
  wire unused_room = &{1'b0, fault_room};
`endif

endmodule : pull_path
