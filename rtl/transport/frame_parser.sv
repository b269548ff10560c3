// Reads frames from the MAC and decides whether to believe them.  The parser takes a beat every clock, for a MAC cannot
// wait.  A frame acts only when its last beat has arrived whole: a vector is written into its place of the ring as it
// arrives, and the ring's reader does not read that place before `take`.
//
//   clock 0  the header's beat is here: its fields against the addresses, partial sums of the checksum
//   clock 1  the header against the streams: first reason to refuse it
//   clock 2  the first beat of the payload is written;  a frame without payload ends
`include "ports.svh"

module frame_parser
  import catchment_wire_pkg::*;
  import serial_pkg::*;
  import transport_pkg::*;
#(
    parameter int unsigned VECTOR_BYTES = 256,
    // places of the ring, a power of two
    parameter int unsigned WINDOW = 1024,
    localparam int unsigned Beats     = VECTOR_BYTES / 64,
    localparam int unsigned PlaceBits = $clog2(WINDOW),
    localparam int unsigned IndexBits  = Beats > 1 ? $clog2(Beats) : 1
) (
    input  logic                 clk,
    input  logic                 rst,

    input  address_settings_t    address,
    input  logic [15:0]          tx_gen,
    input  logic [15:0]          rx_gen,
    // the streams that have begun
    input  logic                 tx_run,
    input  logic                 rx_run,
    // data are sums (FA), not parameters (PARAM)
    input  logic                 sums,
    // sums have packed lanes
    input  logic                 pairs,
    // sums carry what a heartbeat says
    input  logic                 carry,

    `AXIS_FRAME_IN_PORTS(s_axis),
    // on every beat of a frame: it is not of who has its stream's key
    input  logic                 s_forged,

    // clock 1: a header is judged
    output logic                 present,
    output seq_t                 present_seq,
    output seq_t                 present_ack,
    output seq_t                 present_credit,
    // what sender and consumer say to it
    input  logic                 impossible,
    input  logic                 outside,
    input  logic                 repeated,

    // a beat for the ring
    output logic                 write,
    output logic [PlaceBits-1:0] write_place,
    output logic [IndexBits-1:0]  write_beat,
    output logic [511:0]         write_data,

    // a frame has ended, good or refused
    output logic                 frame_end,
    output reject_t              frame_reject,
    // number of bytes that arrived in this clock
    output logic [6:0]           beat_bytes,
    // it was good: a vector, a pair of ack and credit, a request; and what its header said
    output logic                 take,
    output logic                 heard,
    output logic                 request,
    output logic                 heartbeat,
    output seq_t                 frame_seq,
    output rx_meta_t             frame_meta
);

  localparam logic [15:0] UdpAndHeader = UdpBytes + 16'(HeaderBytes);
  localparam logic [15:0] Lanes        = 16'(VECTOR_BYTES / (LaneBits / 8));

  assign s_axis_tready = 1'b1;

  // ---- clock 0: the beat as it comes -----------------------------------------------------------------------
  logic inside_reg;  // the next beat is not a header

  wire first = s_axis_tvalid && !inside_reg;
  wire whole = &s_axis_tkeep;

  logic [6:0] kept;
  always_comb begin
    kept = 7'd0;
    for (int unsigned i = 0; i < 64; i++) kept += {6'd0, s_axis_tkeep[i]};
  end

  // ---- clock 1: the beat -------------------------------------------------------------------------------------
  logic [511:0] data_reg;
  logic         valid_reg;
  logic         first_reg;
  logic         last_reg;
  logic         damaged_reg;
  logic         forged_reg;
  logic         hole_reg;    // a beat before the last was not full
  logic [6:0]   kept_reg;
  logic [7:0]   index_reg;   // of this beat in its frame; stays at its largest

  always_ff @(posedge clk) begin
    data_reg    <= s_axis_tdata;
    last_reg    <= s_axis_tlast;
    damaged_reg <= s_axis_tuser;
    forged_reg  <= s_forged;
    kept_reg    <= kept;
    if (s_axis_tvalid) begin
      first_reg <= first;
      hole_reg  <= (!first && hole_reg) || (!s_axis_tlast && !whole);
      index_reg <= first ? 8'd0 : index_reg + 8'(index_reg != 8'hff);
    end
    if (rst) begin
      inside_reg <= 1'b0;
      valid_reg  <= 1'b0;
    end else begin
      if (s_axis_tvalid) inside_reg <= !s_axis_tlast;
      valid_reg <= s_axis_tvalid;
    end
  end

  assign beat_bytes = valid_reg ? kept_reg : 7'd0;

  // ---- clock 1: the header -----------------------------------------------------------------------------------
  header_t     h;
  logic        ours;
  logic        plain;
  logic        checksum_good;
  logic        whole_reg;
  logic [15:0] ip_length;
  logic [15:0] udp_length;

  header_parser parser (
      .clk,
      .address,
      .data(s_axis_tdata),
      .first,
      .header(h),
      .ours,
      .plain,
      .checksum_good,
      .ip_length,
      .udp_length
  );

  always_ff @(posedge clk) if (first) whole_reg <= whole;

  assign present        = valid_reg && first_reg;
  assign present_seq    = h.seq;
  assign present_ack    = h.ack;
  assign present_credit = h.credit;

  wire is_tx     = tx_run && h.gen == tx_gen;
  wire is_rx     = rx_run && h.gen == rx_gen;
  wire is_merged = h.ptype == PACKET_TYPE_MH;
  wire is_data   = h.ptype == (sums ? PACKET_TYPE_FA : PACKET_TYPE_PARAM);
  wire of_lanes  = (h.flags & (FLAG_PACKED | FLAG_MIXED)) != 8'd0;  // only a sum has such flags
  wire has_pair  = (h.flags & FLAG_ACKV) != 8'd0;
  wire is_heard  = has_pair && is_tx && (is_merged || carry);

  logic [15:0] payload;     // that the header promises
  logic        dtype_good;
  logic        lanes_good;

  always_comb begin
    if (is_merged) begin
      payload    = 16'd0;
      dtype_good = 1'b1;
      lanes_good = h.lanes == 16'd0;
    end else if (sums) begin
      payload    = 16'(VECTOR_BYTES);
      dtype_good = h.dtype >= DATA_TYPE_INT32 && h.dtype <= DATA_TYPE_BF16;
      lanes_good = h.lanes == Lanes;
    end else begin
      payload    = h.lanes;
      dtype_good = h.dtype == DATA_TYPE_BYTES;
      lanes_good = h.lanes - 16'd1 < 16'(VECTOR_BYTES);
    end
  end

  wire length_good = udp_length == payload + UdpAndHeader && ip_length == udp_length + Ipv4Bytes;

  reject_t judged;
  always_comb begin
    if (!ours) judged = REJECT_DESTINATION;
    else if (!plain || !checksum_good) judged = REJECT_IPV4;
    else if (!whole_reg) judged = REJECT_SHORT;
    else if (h.version != 4'(Version)) judged = REJECT_VERSION;
    else if ((h.flags & ~FLAG_ALL) != 8'd0 || (of_lanes && !(sums && is_data))) judged = REJECT_FLAGS;
    else if (!is_tx && !is_rx) judged = REJECT_GENERATION;
    else if (!(is_merged && is_tx) && !(is_data && is_rx)) judged = REJECT_TYPE;
    else if (is_merged && !has_pair) judged = REJECT_FLAGS;
    else if (!dtype_good) judged = REJECT_DTYPE;
    else if (!lanes_good) judged = REJECT_LANES;
    else if (!length_good) judged = REJECT_LENGTH;
    else if (is_heard && impossible) judged = REJECT_ACK;
    else if (is_merged) judged = REJECT_NONE;
    else if (repeated) judged = REJECT_DUPLICATE;
    else if (outside) judged = REJECT_WINDOW;
    else judged = REJECT_NONE;
  end

  // ---- clock 2: what is known of the frame until it ends ------------------------------------------------------
  reject_t     reject_reg;
  logic        merged_reg;
  logic        heard_reg;
  logic [7:0]  payload_beats_reg;
  logic [6:0]  payload_rest_reg;    // bytes of the last beat, 1..64
  logic [5:0]  flags_reg;
  seq_t        seq_reg;
  rx_meta_t    meta_reg;

  wire [15:0] before_last = payload - 16'd1;

  always_ff @(posedge clk) begin
    if (present) begin
      merged_reg        <= is_merged;
      heard_reg         <= is_heard;
      payload_beats_reg <= payload == 16'd0 ? 8'd0 : before_last[13:6] + 8'd1;
      payload_rest_reg  <= payload == 16'd0 ? 7'd64 : {1'b0, before_last[5:0]} + 7'd1;
      flags_reg         <= h.flags[5:0];
      seq_reg           <= h.seq;
      meta_reg.dtype    <= data_type_t'(h.dtype);
      meta_reg.exp      <= h.exp;
      meta_reg.next_exp <= h.next_exp;
      meta_reg.expv     <= (h.flags & FLAG_EXPV) != 8'd0;
      meta_reg.sat      <= (h.flags & FLAG_SAT) != 8'd0;
      meta_reg.last     <= (h.flags & FLAG_LAST) != 8'd0;
      meta_reg.foreign  <= sums && ((h.flags & FLAG_MIXED) != 8'd0 || ((h.flags & FLAG_PACKED) != 8'd0) != pairs);
      meta_reg.bytes    <= payload;
      reject_reg        <= judged;
    end
    // A stream that ends meanwhile takes the frame with it.
    else if (!(merged_reg ? tx_run : rx_run) && reject_reg == REJECT_NONE) reject_reg <= REJECT_GENERATION;
  end

  // ---- the end: with the last beat of the payload, or a clock after a header alone -----------------------------
  logic       alone_reg;
  logic       alone_damaged_reg;
  logic       alone_forged_reg;
  logic       alone_whole_reg;

  always_ff @(posedge clk) begin
    alone_damaged_reg <= damaged_reg;
    alone_forged_reg  <= forged_reg;
    alone_whole_reg   <= kept_reg == 7'd64;
    if (rst) alone_reg <= 1'b0;
    else alone_reg <= valid_reg && first_reg && last_reg;
  end

  wire end_payload = valid_reg && last_reg && !first_reg;
  wire damaged     = alone_reg ? alone_damaged_reg : damaged_reg;
  wire forged      = alone_reg ? alone_forged_reg : forged_reg;
  wire complete    = alone_reg ? payload_beats_reg == 8'd0 && alone_whole_reg
                               : index_reg == payload_beats_reg && kept_reg == payload_rest_reg && !hole_reg;
  wire good        = frame_end && frame_reject == REJECT_NONE;
  wire asks        = (flags_reg & 6'(FLAG_RETX)) != 6'd0;

  assign frame_end  = alone_reg || end_payload;
  assign take       = good && !merged_reg;
  assign heard      = good && heard_reg;
  assign heartbeat  = good && merged_reg;
  assign request    = heartbeat && asks;
  assign frame_seq  = seq_reg;
  assign frame_meta = meta_reg;

  always_comb begin
    if (damaged) frame_reject = REJECT_FCS;
    else if (forged) frame_reject = REJECT_TAG;
    else if (reject_reg != REJECT_NONE && reject_reg < REJECT_LENGTH) frame_reject = reject_reg;
    else if (!complete) frame_reject = REJECT_LENGTH;
    else frame_reject = reject_reg;
  end

  // ---- the ring ------------------------------------------------------------------------------------------------
  wire [7:0] payload_index = index_reg - 8'd1;

  assign write       = valid_reg && !first_reg && reject_reg == REJECT_NONE && !merged_reg
                       && index_reg <= payload_beats_reg;
  assign write_place = seq_reg[PlaceBits-1:0];
  assign write_beat  = payload_index[IndexBits-1:0];

  // Lanes are big-endian in the frame and little-endian here.
  for (genvar i = 0; i < 64; i++) begin : gen_write
    assign write_data[8*i+:8] = sums ? data_reg[8*(i^3)+:8] : data_reg[8*i+:8];
  end

  wire unused = &{1'b0, payload_index, before_last, flags_reg, h.wid};

endmodule : frame_parser
