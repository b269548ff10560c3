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

  localparam logic [15:0] EtherTypeIpv4 = 16'h0800;
  localparam logic [7:0]  Ipv4First     = 8'h45;  // version 4, no options
  localparam logic [7:0]  ProtocolUdp   = 8'd17;
  localparam logic [15:0] UdpAndHeader  = 16'(8 + HeaderBytes);
  localparam logic [15:0] SumBytes      = 16'(Banks * LaneBits / 8);

  assign s_axis_tready = 1'b1;

  // ---- clock 0 ---------------------------------------------------------------------------------------------------
  logic         inside_reg;  // the next beat is not a header
  logic [511:0] in_order;    // first byte of the frame in the high bits

  for (genvar i = 0; i < 64; i++) begin : gen_byte
    assign in_order[511-8*i-:8] = s_axis_tdata[8*i+:8];
  end

  wire [159:0] ip    = in_order[511-112-:160];
  wire [63:0]  udp   = in_order[511-272-:64];
  wire         first = s_axis_tvalid && !inside_reg;

  function automatic logic [17:0] add3(logic [15:0] a, logic [15:0] b, logic [15:0] c);
    return {2'd0, a} + {2'd0, b} + {2'd0, c};
  endfunction

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
  logic        ours_reg;
  logic        plain_reg;
  logic [17:0] sum_reg[3];
  logic [15:0] word_reg;
  logic [15:0] ip_length_reg;
  logic [15:0] udp_length_reg;

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
    if (first) begin
      h              <= in_order[175:0];
      plain_reg      <= ip[159-:8] == Ipv4First && !(|(ip[159-48-:16] & 16'h3fff));
      ours_reg       <= in_order[511-:48] == rounds.address.local_mac && in_order[511-96-:16] == EtherTypeIpv4
                        && ip[159-72-:8] == ProtocolUdp
                        && ip[63:32] == rounds.address.peer_ip && ip[31:0] == rounds.address.local_ip
                        && udp[63:32] == {rounds.address.peer_port, rounds.address.local_port};
      for (int unsigned i = 0; i < 3; i++) sum_reg[i] <= add3(ip[48*i+:16], ip[48*i+16+:16], ip[48*i+32+:16]);
      word_reg       <= ip[159-:16];
      ip_length_reg  <= ip[159-16-:16];
      udp_length_reg <= udp[31:16];
    end
    if (rst) begin
      inside_reg <= 1'b0;
      valid_reg  <= 1'b0;
    end else begin
      if (s_axis_tvalid) inside_reg <= !s_axis_tlast;
      valid_reg <= s_axis_tvalid;
    end
  end

  // One's complement sum of all ten words.
  wire [19:0] sum      = {2'd0, sum_reg[0]} + {2'd0, sum_reg[1]} + {2'd0, sum_reg[2]} + {4'd0, word_reg};
  wire [16:0] folded   = {1'b0, sum[15:0]} + {13'd0, sum[19:16]};
  wire        sum_good = folded == 17'h0ffff || folded == 17'h1fffe;

  wire        is_sum  = h.ptype == PACKET_TYPE_FA;
  wire [15:0] payload = is_sum ? SumBytes : 16'd0;
  wire        length_good = udp_length_reg == payload + UdpAndHeader && ip_length_reg == udp_length_reg + 16'd20;

  reject_t judged;
  always_comb begin
    if (!ours_reg) judged = REJECT_DESTINATION;
    else if (!plain_reg || !sum_good) judged = REJECT_IPV4;
    else if (!whole_reg) judged = REJECT_SHORT;
    else if (h.version != 4'(Version)) judged = REJECT_VERSION;
    else if ((h.flags & ~FLAG_ALL) != 8'd0) judged = REJECT_FLAGS;
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

  wire unused = &{1'b0, in_order[511-48-:48], udp[15:0], ip[159-32-:16], h.wid, h.exp, h.next_exp, h.ack, h.credit, rounds.base_seq, rounds.slots,
                  rounds.rto, rounds.wid, rounds.address.peer_mac};

endmodule : round_parser
