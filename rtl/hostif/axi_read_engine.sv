// Reads segments from memory by AXI4 bursts and hands their beats over in order.
// A burst is asked for only when there is room for all of it, so rready is high from the first clock to the last, whatever
// the reader does, and a soft reset need only wait until `idle`.
`include "ports.svh"

module axi_read_engine
  import hostif_pkg::*;
#(
    // number of beats of the longest burst, a power of two, at most 64
    parameter int unsigned BURST_BEATS = 16,
    // number of beats that may be asked for and not handed over yet, a power of two; memory's latency decides how many
    parameter int unsigned BUFFER_BEATS = 512,
    // number of bursts that may be under way, a power of two
    parameter int unsigned BURSTS = 64,
    // number of bits that go with a segment
    parameter int unsigned USER_BITS = 1
) (
    input  logic                 clk,
    input  logic                 rst,
    // no new burst begins while this is high
    input  logic                 hold,
    output logic                 idle,

    input  segment_t             s_segment,
    input  logic [USER_BITS-1:0] s_segment_user,
    input  logic                 s_segment_valid,
    output logic                 s_segment_ready,

    `AXI_READ_PORTS(m_axi),

    // a request's beats; bytes beyond its end are zero and not kept, and so are those of an unmapped segment but kept
    output logic [511:0]         m_axis_tdata,
    output logic [63:0]          m_axis_tkeep,
    output logic                 m_axis_tlast,
    // {memory answered with an error, the page was gone, what came with the segment}
    output logic [USER_BITS+1:0] m_axis_tuser,
    output logic                 m_axis_tvalid,
    input  logic                 m_axis_tready
);

  localparam int unsigned RoomBits = $clog2(BUFFER_BEATS) + 1;
  localparam int unsigned BeatBits = $clog2(BURST_BEATS) + 1;

  if (BURST_BEATS != 1 << (BeatBits - 1) || BURST_BEATS > 64) begin : gen_bad_burst
    $fatal(1, "axi_read_engine: BURST_BEATS must be a power of two, at most 64");
  end
  if (BUFFER_BEATS != 1 << (RoomBits - 1) || BUFFER_BEATS < BURST_BEATS) begin : gen_bad_buffer
    $fatal(1, "axi_read_engine: BUFFER_BEATS must be a power of two, at least BURST_BEATS");
  end

  // what the engine knows of a burst when its beats arrive
  typedef struct packed {
    logic [BeatBits-1:0]  beats;
    logic [5:0]           end_bytes;  // number of bytes kept of its last beat; 0: all
    logic                 last;       // the burst is the last of its request
    logic                 unmapped;
    logic [USER_BITS-1:0] user;
  } burst_t;

  // ---- cut segments into bursts -----------------------------------------------------------------------
  logic                 busy_reg;
  segment_t             segment_reg;
  logic [USER_BITS-1:0] user_reg;
  logic [6:0]           beats_left_reg;
  logic [BeatBits-1:0]  beats;
  logic                 ends;
  logic [RoomBits-1:0]  room_reg;
  logic                 issue;
  logic                 track_ready;
  logic                 release_beat;

  assign ends  = beats_left_reg <= 7'(BURST_BEATS);
  assign beats = ends ? beats_left_reg[BeatBits-1:0] : BeatBits'(BURST_BEATS);
  assign issue = busy_reg && !hold && track_ready && room_reg >= RoomBits'(beats) && (!m_axi_arvalid || m_axi_arready);

  assign s_segment_ready = !busy_reg || (issue && ends);

  always_ff @(posedge clk) begin
    if (s_segment_valid && s_segment_ready) begin
      segment_reg    <= s_segment;
      user_reg       <= s_segment_user;
      beats_left_reg <= 7'((s_segment.bytes + SegmentBytesBits'(BeatBytes - 1)) >> 6);
    end else if (issue) begin
      segment_reg.address <= segment_reg.address + PhysicalBits'({beats, 6'd0});
      beats_left_reg      <= beats_left_reg - 7'(beats);
    end
    if (!m_axi_arvalid || m_axi_arready) begin
      m_axi_araddr <= segment_reg.address;
      m_axi_arlen  <= 8'(beats) - 8'd1;
    end
    if (rst) begin
      busy_reg      <= 1'b0;
      m_axi_arvalid <= 1'b0;
      room_reg      <= RoomBits'(BUFFER_BEATS);
    end else begin
      if (s_segment_valid && s_segment_ready) busy_reg <= 1'b1;
      else if (issue && ends) busy_reg <= 1'b0;
      if (!m_axi_arvalid || m_axi_arready) m_axi_arvalid <= issue && !segment_reg.unmapped;
      room_reg <= room_reg - (issue ? RoomBits'(beats) : '0) + RoomBits'(release_beat);
    end
  end

  // ---- bursts whose beats have not all arrived ----------------------------------------------------------
  burst_t burst;
  logic   burst_valid;
  logic   burst_done;

  sync_fifo #(.WIDTH($bits(burst_t)), .DEPTH(BURSTS), .RAM_STYLE("distributed")) outstanding (
      .clk,
      .rst,
      .s_data({beats, ends && segment_reg.last ? segment_reg.bytes[5:0] : 6'd0, segment_reg.last && ends, segment_reg.unmapped, user_reg}),
      .s_valid(issue),
      .s_ready(track_ready),
      .m_data(burst),
      .m_valid(burst_valid),
      .m_ready(burst_done),
      .level()
  );

  // ---- beats: from memory, or zeros for a page that was gone -------------------------------------------------
  logic [BeatBits-1:0] beat_reg;
  logic                arrives;
  logic                ends_burst;
  logic [5:0]          end_bytes;
  logic [63:0]         keep;
  logic [511:0]        data;
  logic                error;
  logic                buffer_ready;

  assign m_axi_rready = burst_valid && !burst.unmapped;
  assign arrives      = burst_valid && (burst.unmapped || m_axi_rvalid);
  assign ends_burst   = beat_reg == burst.beats - 1'b1;
  assign burst_done   = arrives && ends_burst;
  assign error        = !burst.unmapped && m_axi_rresp[1];

  assign end_bytes    = ends_burst ? burst.end_bytes : 6'd0;

  always_comb begin
    keep = kept(end_bytes);
    for (int unsigned i = 0; i < BeatBytes; i++) begin
      data[8*i+:8] = keep[i] && !burst.unmapped ? m_axi_rdata[8*i+:8] : 8'd0;
    end
  end

  always_ff @(posedge clk) begin
    if (rst) beat_reg <= '0;
    else if (arrives) beat_reg <= ends_burst ? '0 : beat_reg + 1'b1;
  end

  // Where the last beat ends is kept as a number: tkeep would cost a block RAM.
  logic [5:0] out_end_bytes;

  sync_fifo #(.WIDTH(512 + 6 + 1 + USER_BITS + 2), .DEPTH(BUFFER_BEATS), .RAM_STYLE("block")) buffer (
      .clk,
      .rst,
      .s_data({data, end_bytes, burst.last && ends_burst, error, burst.unmapped, burst.user}),
      .s_valid(arrives),
      .s_ready(buffer_ready),
      .m_data({m_axis_tdata, out_end_bytes, m_axis_tlast, m_axis_tuser}),
      .m_valid(m_axis_tvalid),
      .m_ready(m_axis_tready),
      .level()
  );

  assign m_axis_tkeep = kept(out_end_bytes);

  assign release_beat = m_axis_tvalid && m_axis_tready;
  assign idle         = !m_axi_arvalid && !burst_valid && !issue;

  // The length that was asked for says where a burst ends.
  wire unused = &{1'b0, m_axi_rlast, m_axi_rresp[0], buffer_ready};

`ifndef SYNTHESIS
  always_ff @(posedge clk) begin
    if (!rst) begin
      a_room : assert (!arrives || buffer_ready);
      a_rlast : assert (!(m_axi_rvalid && m_axi_rready) || m_axi_rlast == ends_burst);
      a_4k : assert (!m_axi_arvalid || {1'b0, m_axi_araddr[11:0]} + {m_axi_arlen[6:0] + 7'd1, 6'd0} <= 13'd4096);
    end
  end
`endif

endmodule : axi_read_engine
