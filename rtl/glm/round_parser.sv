// Takes sums (FA) and confirmations (CNF) from the MAC that are whole and meant for us; refuses every other frame and
// counts it by its first reason.  The parser takes a beat every clock, for a MAC cannot wait.
//
//   clock 0  the header's beat: its fields against the addresses, partial sums of the checksum
//   clock 1  the header is judged
//   clock 2  the frame ends: a confirmation, or a sum whose lanes are here
`include "ports.svh"

module round_parser
  import catchment_wire_pkg::*;
  import glm_numbers_pkg::*;
  import glm_pkg::*;
  import serial_pkg::*;
  import transport_pkg::*;
(
    input  logic         clk,
    input  logic         rst,
    input  rounds_t      rounds,

    `AXIS_FRAME_IN_PORTS(s_axis),

    // high for a clock: a frame has ended
    output logic         frame_end,
    output reject_t      frame_reject,
    // that frame was good
    output logic         heard,
    output logic         heard_sum,
    output seq_t         heard_seq,
    output lanes_t       heard_lanes,
    output logic         heard_saturated
);

  localparam logic [15:0] UdpAndHeader = UdpBytes + 16'(HeaderBytes);
  localparam logic [15:0] SumBytes     = 16'(Banks * LaneBits / 8);

  assign s_axis_tready = 1'b1;

  // ---- clock 0 ---------------------------------------------------------------------------------------------------
  logic inside_reg;  // the next beat is not a header

  wire first = s_axis_tvalid && !inside_reg;

  // ---- clock 1 ---------------------------------------------------------------------------------------------------
  logic [8*SumBytes-1:0] data_reg;
  logic        valid_reg;
  logic        first_reg;
  logic        last_reg;
  logic        damaged_reg;
  logic        whole_reg;     // 64 bytes
  logic        sum_size_reg;  // as many as a sum has
  logic        second_reg;    // the beat after the header's
  header_t     h;
  logic        ours;
  logic        plain;
  logic        checksum_good;
  logic [15:0] ip_length;
  logic [15:0] udp_length;

  header_parser parser (
      .clk,
      .address(rounds.address),
      .data(s_axis_tdata),
      .first,
      .header(h),
      .ours,
      .plain,
      .checksum_good,
      .ip_length,
      .udp_length
  );

  always_ff @(posedge clk) begin
    data_reg     <= s_axis_tdata[8*SumBytes-1:0];
    last_reg     <= s_axis_tlast;
    damaged_reg  <= s_axis_tuser;
    whole_reg    <= &s_axis_tkeep;
    sum_size_reg <= s_axis_tkeep == 64'((65'd1 << SumBytes) - 65'd1);
    if (s_axis_tvalid) begin
      first_reg  <= first;
      second_reg <= first_reg && !first;
    end
    if (rst) begin
      inside_reg <= 1'b0;
      valid_reg  <= 1'b0;
    end else begin
      if (s_axis_tvalid) inside_reg <= !s_axis_tlast;
      valid_reg <= s_axis_tvalid;
    end
  end

  wire        is_sum  = h.ptype == PACKET_TYPE_FA;
  wire [15:0] payload = is_sum ? SumBytes : 16'd0;
  wire        length_good = udp_length == payload + UdpAndHeader && ip_length == udp_length + Ipv4Bytes;

  reject_t judged;
  always_comb begin
    if (!ours) judged = REJECT_DESTINATION;
    else if (!plain || !checksum_good) judged = REJECT_IPV4;
    else if (!whole_reg) judged = REJECT_SHORT;
    else if (h.version != 4'(Version)) judged = REJECT_VERSION;
    else if ((h.flags & ~FLAG_ALL) != 8'd0 || (h.flags & (FLAG_PACKED | FLAG_MIXED)) != 8'd0) judged = REJECT_FLAGS;
    else if (!rounds.enable || h.gen != rounds.gen) judged = REJECT_GENERATION;
    else if (!is_sum && h.ptype != PACKET_TYPE_CNF) judged = REJECT_TYPE;
    else if (is_sum && h.dtype != DATA_TYPE_INT32) judged = REJECT_DTYPE;
    else if (h.lanes != (is_sum ? 16'(Banks) : 16'd0)) judged = REJECT_LANES;
    else if (!length_good) judged = REJECT_LENGTH;
    else judged = REJECT_NONE;
  end

  // ---- clock 2: the end ------------------------------------------------------------------------------------------
  reject_t reject_reg;
  logic    is_sum_reg;
  seq_t    seq_reg;
  logic    saturated_reg;
  logic    alone_reg;  // a frame of one beat has ended
  logic    alone_damaged_reg;

  always_ff @(posedge clk) begin
    alone_damaged_reg <= damaged_reg;
    if (valid_reg && first_reg) begin
      reject_reg    <= judged;
      is_sum_reg    <= is_sum;
      seq_reg       <= h.seq;
      saturated_reg <= (h.flags & FLAG_SAT) != 8'd0;
    end
    if (rst) alone_reg <= 1'b0;
    else alone_reg <= valid_reg && first_reg && last_reg;
  end

  wire end_payload = valid_reg && last_reg && !first_reg;
  wire complete    = alone_reg ? !is_sum_reg : is_sum_reg && second_reg && sum_size_reg;

  assign frame_end = alone_reg || end_payload;

  always_comb begin
    if (alone_reg ? alone_damaged_reg : damaged_reg) frame_reject = REJECT_FCS;
    else if (reject_reg != REJECT_NONE) frame_reject = reject_reg;
    else if (!complete) frame_reject = REJECT_LENGTH;
    else frame_reject = REJECT_NONE;
  end

  assign heard           = frame_end && frame_reject == REJECT_NONE;
  assign heard_sum       = is_sum_reg;
  assign heard_seq       = seq_reg;
  assign heard_saturated = saturated_reg;

  // Lanes are big-endian in the frame and little-endian here.
  for (genvar i = 0; i < SumBytes; i++) begin : gen_lane_byte
    assign heard_lanes[i/4][8*(3-i%4)+:8] = data_reg[8*i+:8];
  end

  wire unused = &{1'b0, h.wid, h.exp, h.next_exp, h.ack, h.credit, rounds.base_seq, rounds.slots, rounds.rto, rounds.wid};

endmodule : round_parser
