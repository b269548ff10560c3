// Proves of round_parser: whatever beats arrive, in whatever order: every frame ends once, in its time, and it is heard
// exactly if it is whole, undamaged and meant for us, as its bytes say one by one; then with its bytes' round and
// lanes.  No beat waits. Whether the checksum is right is the parser's word (`checksum_good`, which stays until the next
// header): tests look at it.
module round_parser_fv
  import catchment_wire_pkg::*;
  import glm_numbers_pkg::*;
  import glm_pkg::*;
  import serial_pkg::*;
  import transport_pkg::*;
(
    input logic         clk,
    input logic         rst,
    input rounds_t      rounds,
    input logic [511:0] s_axis_tdata,
    input logic [63:0]  s_axis_tkeep,
    input logic         s_axis_tlast,
    input logic         s_axis_tuser,
    input logic         s_axis_tvalid
);

  logic s_axis_tready, frame_end, heard, heard_sum, heard_saturated;
  reject_t frame_reject;
  seq_t heard_seq;
  lanes_t heard_lanes;

  round_parser dut (.*);

  localparam int unsigned Udp = 34;     // bytes before the UDP header
  localparam int unsigned Ours = 42;    // and before ours
  localparam int unsigned Lengths = 28; // IPv4 and UDP headers

  function automatic logic [7:0] one(logic [511:0] beat, int unsigned at);
    return beat[8*at+:8];
  endfunction
  function automatic logic [15:0] two(logic [511:0] beat, int unsigned at);
    return {one(beat, at), one(beat, at + 1)};
  endfunction
  function automatic logic [31:0] four(logic [511:0] beat, int unsigned at);
    return {two(beat, at), two(beat, at + 2)};
  endfunction

  header_t h;
  for (genvar i = 0; i < HeaderBytes; i++) begin : gen_header
    assign h[8*(HeaderBytes-1-i)+:8] = s_axis_tdata[8*(Ours+i)+:8];
  end

  wire is_sum = h.ptype == PACKET_TYPE_FA;
  wire [15:0] length = 16'(Lengths + HeaderBytes) + (is_sum ? 16'd32 : 16'd0);
  wire good_header = &s_axis_tkeep
      && {four(s_axis_tdata, 0), two(s_axis_tdata, 4)} == rounds.address.local_mac
      && two(s_axis_tdata, 12) == EtherTypeIpv4 && one(s_axis_tdata, 14) == Ipv4FirstByte
      && two(s_axis_tdata, 16) == length && (two(s_axis_tdata, 20) & Ipv4Fragment) == 16'd0
      && one(s_axis_tdata, 23) == Ipv4ProtocolUdp
      && four(s_axis_tdata, 26) == rounds.address.peer_ip && four(s_axis_tdata, 30) == rounds.address.local_ip
      && two(s_axis_tdata, Udp) == rounds.address.peer_port && two(s_axis_tdata, Udp + 2) == rounds.address.local_port
      && two(s_axis_tdata, Udp + 4) == length - 16'd20
      && h.version == 4'(Version) && (h.flags & (~FLAG_ALL | FLAG_PACKED | FLAG_MIXED)) == 8'd0 && rounds.enable && h.gen == rounds.gen
      && (is_sum ? h.dtype == DATA_TYPE_INT32 && h.lanes == 16'd8 : h.ptype == PACKET_TYPE_CNF && h.lanes == 16'd0);

  logic       past_reg = 1'b0;
  logic       past_two_reg = 1'b0;
  logic [1:0] beats_reg;    // of this frame so far, up to two
  logic       header_reg;   // its header is good
  logic       sum_reg;
  logic       heard_before_reg;  // a sum
  seq_t       seq_reg;
  // what must be said: of a frame of one beat two clocks later, of others one
  logic       ends_reg, good_reg;
  logic       alone_reg[2];
  logic       alone_good_reg[2];
  seq_t       alone_seq_reg[2];
  seq_t       end_seq_reg;
  logic [255:0] lanes_reg;

  lanes_t     lanes;
  for (genvar i = 0; i < 8; i++) begin : gen_lane
    assign lanes[i] = {lanes_reg[32*i+:8], lanes_reg[32*i+8+:8], lanes_reg[32*i+16+:8], lanes_reg[32*i+24+:8]};
  end

  wire first = beats_reg == 2'd0;
  wire ends  = s_axis_tvalid && s_axis_tlast;

  always_ff @(posedge clk) begin
    past_reg     <= 1'b1;
    past_two_reg <= past_reg;
    if (!past_reg) assume (rst);
    else assume (!rst && $stable(rounds));

    if (!past_reg || rst) begin
      beats_reg <= 2'd0;
      {ends_reg, alone_reg[0], alone_reg[1], heard_before_reg} <= '0;
    end else begin
      if (s_axis_tvalid) beats_reg <= s_axis_tlast ? 2'd0 : beats_reg == 2'd2 ? 2'd2 : beats_reg + 2'd1;
      ends_reg     <= ends && !first;
      alone_reg[0] <= ends && first;
      alone_reg[1] <= alone_reg[0];
      if (heard && heard_sum) heard_before_reg <= 1'b1;
    end
    if (s_axis_tvalid && first) begin
      header_reg <= good_header;
      sum_reg    <= is_sum;
      seq_reg    <= h.seq;
    end
    good_reg          <= !s_axis_tuser && header_reg && dut.checksum_good && sum_reg && beats_reg == 2'd1 && s_axis_tkeep == 64'hffff_ffff;
    end_seq_reg       <= seq_reg;
    alone_good_reg[0] <= !s_axis_tuser && good_header && !is_sum;
    alone_good_reg[1] <= alone_good_reg[0] && dut.checksum_good;
    alone_seq_reg[0]  <= h.seq;
    alone_seq_reg[1]  <= alone_seq_reg[0];
    lanes_reg         <= s_axis_tdata[255:0];

    if (past_reg && !rst) begin
      no_beat_waits : assert (s_axis_tready);
      ends_once : assert (frame_end == (ends_reg || alone_reg[1]) && !(ends_reg && alone_reg[1]));
      heard_if_good : assert (heard == ((ends_reg && good_reg) || (alone_reg[1] && alone_good_reg[1])));
      counted_else : assert (!frame_end || heard == (frame_reject == REJECT_NONE));
      if (heard) begin
        its_kind : assert (heard_sum == ends_reg);
        its_round : assert (heard_seq == (ends_reg ? end_seq_reg : alone_seq_reg[1]));
        its_lanes : assert (!heard_sum || heard_lanes == lanes);
      end
    end

    // what makes it inductive: the header that the parser has judged is the one that the harness has seen
    if (past_reg && !rst) begin
      inside_a_frame : assert (dut.inside_reg == (beats_reg != 2'd0) && beats_reg != 2'd3);
      if (beats_reg != 2'd0) begin
        after_header : assert (dut.first_reg == (beats_reg == 2'd1));
        if (!(dut.valid_reg && dut.first_reg)) begin
          judged : assert ((dut.reject_reg == REJECT_NONE) == (header_reg && dut.checksum_good) && dut.is_sum_reg == sum_reg
                           && dut.seq_reg == seq_reg);
        end
      end
    end

    a_sum : cover (past_two_reg && heard && heard_sum);
    a_confirmation : cover (past_two_reg && heard && !heard_sum);
    damaged : cover (past_two_reg && frame_end && frame_reject == REJECT_FCS);
    both : cover (past_two_reg && heard && !heard_sum && heard_before_reg);
  end

  wire unused = &{1'b0, heard_saturated};

endmodule : round_parser_fv
