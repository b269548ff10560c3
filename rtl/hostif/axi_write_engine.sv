// Writes the beats of segments to memory by AXI4 bursts, and completion records between them.
// A burst begins only when all its beats are here, so it never holds the bus for the network, and a soft reset need only
// wait until `idle`.  A slow bus makes bursts longer.
`include "ports.svh"

module axi_write_engine
  import hostif_pkg::*;
#(
    // number of beats of the longest burst, a power of two, at most 64
    parameter int unsigned BURST_BEATS = 16,
    // number of beats that are worth a burst of their own, at most BURST_BEATS; fewer make one only where their segment ends
    parameter int unsigned LEAST_BEATS = BURST_BEATS < 4 ? BURST_BEATS : 4,
    // number of beats that may wait here, a power of two
    parameter int unsigned BUFFER_BEATS = 64
) (
    input  logic                           clk,
    input  logic                           rst,
    // no new burst begins while this is high
    input  logic                           hold,
    output logic                           idle,

    input  segment_t                       s_segment,
    input  logic                           s_segment_valid,
    output logic                           s_segment_ready,

    // exactly the beats of the segments; bytes that are not kept leave memory as it is
    input  logic [511:0]                   s_axis_tdata,
    input  logic [63:0]                    s_axis_tkeep,
    input  logic                           s_axis_tvalid,
    output logic                           s_axis_tready,

    // a completion record and its address; stays until it is taken
    input  physical_t                      s_record_address,
    input  logic [8*CompletionBytes-1:0]   s_record,
    input  logic                           s_record_valid,
    output logic                           s_record_ready,

    `AXI_WRITE_PORTS(m_axi),

    // high for a clock: memory has all beats of a request; beside it, whether a beat was refused or had no page
    output logic                           data_done,
    output logic                           data_error,
    output logic                           data_unmapped,
    // high for a clock: memory has a completion record
    output logic                           record_done,
    output logic                           record_error
);

  localparam int unsigned BeatBits = $clog2(BURST_BEATS) + 1;
  localparam int unsigned LevelBits = $clog2(BUFFER_BEATS) + 1;
  // bursts in flight
  localparam int unsigned Bursts = 32;

  if (BURST_BEATS != 1 << (BeatBits - 1) || BURST_BEATS > 64) begin : gen_bad_burst
    $fatal(1, "axi_write_engine: BURST_BEATS must be a power of two, at most 64");
  end
  if (BUFFER_BEATS != 1 << (LevelBits - 1) || BUFFER_BEATS < BURST_BEATS) begin : gen_bad_buffer
    $fatal(1, "axi_write_engine: BUFFER_BEATS must be a power of two, at least BURST_BEATS");
  end
  if (LEAST_BEATS < 1 || LEAST_BEATS > BURST_BEATS) begin : gen_bad_least
    $fatal(1, "axi_write_engine: LEAST_BEATS must be 1..BURST_BEATS");
  end

  typedef struct packed {
    logic [BeatBits-1:0] beats;
    logic                record;
    logic                unmapped;
  } burst_t;

  typedef struct packed {
    logic record;
    logic unmapped;
    logic last;  // the burst is the last of its request
  } answer_t;

  // ---- beats that wait; unclaimed ones belong to no burst yet -------------------------------------------
  logic [511:0]         data;
  logic [63:0]          keep;
  logic                 data_valid;
  logic                 data_take;
  logic [LevelBits-1:0] unclaimed_reg;

  sync_fifo #(.WIDTH(512 + 64), .DEPTH(BUFFER_BEATS), .RAM_STYLE("distributed")) buffer (
      .clk,
      .rst,
      .s_data({s_axis_tdata, s_axis_tkeep}),
      .s_valid(s_axis_tvalid),
      .s_ready(s_axis_tready),
      .m_data({data, keep}),
      .m_valid(data_valid),
      .m_ready(data_take),
      .level()
  );

  // ---- choose a burst -------------------------------------------------------------------------------------
  logic                busy_reg;
  segment_t            segment_reg;
  logic [6:0]          beats_left_reg;
  logic                record_claimed_reg;
  logic [BeatBits-1:0] most;
  logic [BeatBits-1:0] beats;
  logic                may_issue;
  logic                issue_record;
  logic                issue_data;
  logic                issue;
  logic                ends;
  logic                burst_room;
  logic                answer_room;

  assign most  = beats_left_reg < 7'(BURST_BEATS) ? beats_left_reg[BeatBits-1:0] : BeatBits'(BURST_BEATS);
  assign beats = unclaimed_reg < LevelBits'(most) ? unclaimed_reg[BeatBits-1:0] : most;
  assign ends  = 7'(beats) == beats_left_reg;

  assign may_issue    = !hold && burst_room && answer_room && (!m_axi_awvalid || m_axi_awready);
  assign issue_record = may_issue && s_record_valid && !record_claimed_reg;
  assign issue_data   = may_issue && !issue_record && busy_reg
                     && (beats == most || beats >= BeatBits'(LEAST_BEATS));
  assign issue        = issue_record || issue_data;

  assign s_segment_ready = !busy_reg || (issue_data && ends);

  always_ff @(posedge clk) begin
    if (s_segment_valid && s_segment_ready) begin
      segment_reg    <= s_segment;
      beats_left_reg <= 7'((s_segment.bytes + SegmentBytesBits'(BeatBytes - 1)) >> 6);
    end else if (issue_data) begin
      segment_reg.address <= segment_reg.address + PhysicalBits'({beats, 6'd0});
      beats_left_reg      <= beats_left_reg - 7'(beats);
    end
    if (!m_axi_awvalid || m_axi_awready) begin
      m_axi_awaddr <= issue_record ? {s_record_address[PhysicalBits-1:6], 6'd0} : segment_reg.address;
      m_axi_awlen  <= issue_record ? 8'd0 : 8'(beats) - 8'd1;
    end
    if (rst) begin
      busy_reg           <= 1'b0;
      m_axi_awvalid      <= 1'b0;
      record_claimed_reg <= 1'b0;
      unclaimed_reg      <= '0;
    end else begin
      if (s_segment_valid && s_segment_ready) busy_reg <= 1'b1;
      else if (issue_data && ends) busy_reg <= 1'b0;
      if (!m_axi_awvalid || m_axi_awready) m_axi_awvalid <= issue && (issue_record || !segment_reg.unmapped);
      if (issue_record) record_claimed_reg <= 1'b1;
      else if (s_record_valid && s_record_ready) record_claimed_reg <= 1'b0;
      unclaimed_reg <= unclaimed_reg + LevelBits'(s_axis_tvalid && s_axis_tready) - (issue_data ? LevelBits'(beats) : '0);
    end
  end

  // ---- move the beats of the bursts that were chosen --------------------------------------------------------
  burst_t              burst;
  logic                burst_valid;
  logic                burst_done;
  logic [BeatBits-1:0] beat_reg;
  logic                last_beat;
  logic                moves;

  sync_fifo #(.WIDTH($bits(burst_t)), .DEPTH(4), .RAM_STYLE("distributed")) bursts (
      .clk,
      .rst,
      .s_data({beats, issue_record, !issue_record && segment_reg.unmapped}),
      .s_valid(issue),
      .s_ready(burst_room),
      .m_data(burst),
      .m_valid(burst_valid),
      .m_ready(burst_done),
      .level()
  );

  localparam int unsigned RecordShift = $clog2(CompletionBytes);

  assign last_beat      = burst.record || beat_reg == burst.beats - 1'b1;
  assign m_axi_wvalid   = burst_valid && (burst.record || (data_valid && !burst.unmapped));
  assign moves          = burst_valid && (burst.unmapped ? data_valid : m_axi_wvalid && m_axi_wready);
  assign burst_done     = moves && last_beat;
  assign data_take      = moves && !burst.record;
  assign s_record_ready = moves && burst.record;
  assign m_axi_wlast    = last_beat;

  always_comb begin
    m_axi_wdata = data;
    m_axi_wstrb = keep;
    if (burst.record) begin
      m_axi_wdata = {(BeatBytes / CompletionBytes) {s_record}};
      m_axi_wstrb = '0;
      m_axi_wstrb[{s_record_address[5:RecordShift], {RecordShift{1'b0}}}+:CompletionBytes] = '1;
    end
  end

  always_ff @(posedge clk) begin
    if (rst) beat_reg <= '0;
    else if (moves) beat_reg <= last_beat ? '0 : beat_reg + 1'b1;
  end

  // ---- answers ------------------------------------------------------------------------------------------------
  answer_t answer;
  logic    answer_valid;
  logic    answered;
  logic    error_reg;
  logic    unmapped_reg;

  sync_fifo #(.WIDTH($bits(answer_t)), .DEPTH(Bursts), .RAM_STYLE("distributed")) answers (
      .clk,
      .rst,
      .s_data({issue_record, !issue_record && segment_reg.unmapped, !issue_record && segment_reg.last && ends}),
      .s_valid(issue),
      .s_ready(answer_room),
      .m_data(answer),
      .m_valid(answer_valid),
      .m_ready(answered),
      .level()
  );

  assign m_axi_bready = answer_valid && !answer.unmapped;
  assign answered     = answer_valid && (answer.unmapped || m_axi_bvalid);

  always_ff @(posedge clk) begin
    data_error    <= error_reg || (!answer.unmapped && m_axi_bresp[1]);
    data_unmapped <= unmapped_reg || answer.unmapped;
    record_error  <= m_axi_bresp[1];
    if (rst) begin
      data_done    <= 1'b0;
      record_done  <= 1'b0;
      error_reg    <= 1'b0;
      unmapped_reg <= 1'b0;
    end else begin
      data_done   <= answered && answer.last;
      record_done <= answered && answer.record;
      if (answered && !answer.record) begin
        error_reg    <= !answer.last && (error_reg || (!answer.unmapped && m_axi_bresp[1]));
        unmapped_reg <= !answer.last && (unmapped_reg || answer.unmapped);
      end
    end
  end

  assign idle = !m_axi_awvalid && !burst_valid && !answer_valid && !issue;

  wire unused = &{1'b0, m_axi_bresp[0], s_record_address[RecordShift-1:0], segment_reg.bytes};

`ifndef SYNTHESIS
  always_ff @(posedge clk) begin
    if (!rst) begin
      a_4k : assert (!m_axi_awvalid || {1'b0, m_axi_awaddr[11:0]} + {m_axi_awlen[6:0] + 7'd1, 6'd0} <= 13'd4096);
      a_here : assert (!burst_valid || burst.record || burst.unmapped || data_valid);
    end
  end
`endif

endmodule : axi_write_engine
