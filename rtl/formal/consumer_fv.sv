// Proves of consumer behind the parser whose frames it judges: a sequence number, any one, is taken once and handed over once, in
// order, whatever beats arrive and whenever streams end and begin; what was not taken is never acknowledged.
`include "ports.svh"

module consumer_fv
  import catchment_wire_pkg::*;
  import serial_pkg::*;
  import transport_pkg::*;
#(
    // at least 2
    parameter int unsigned WINDOW = 4,
    // 1: the frames that arrive are vectors, good, of zeros, and differ in their numbers alone: some of those of 0, and quicker to find
    parameter int unsigned ALIKE = 0,
    localparam int unsigned PlaceBits = $clog2(WINDOW)
) (
    input logic              clk,
    input logic              rst,
    input logic              enable,
    input seq_t              base,
    input logic [15:0]       window,
    input logic              reader_idle,
    input address_settings_t address,
    input logic [15:0]       tx_gen,
    input logic [15:0]       rx_gen,
    input logic              tx_run,
    input logic              sums,
    input logic              pairs,
    input logic              carry,
    `AXIS_FRAME_IN_PORTS(s_axis),
    input logic              s_forged,
    input logic              impossible,
    input logic              pop,
    input logic              missing_ready,
    input logic [32:0]       any
);

  logic run, repeated, outside, ready, missing_valid, take;
  seq_t ack, consumed, credit, highest, missing_seq, present_seq, take_seq;

  consumer #(.WINDOW(WINDOW)) dut (.*);

  frame_parser #(.VECTOR_BYTES(64), .WINDOW(WINDOW)) parser (
      .rx_run(run), .frame_seq(take_seq), .present(), .present_ack(), .present_credit(),
      .write(), .write_place(), .write_beat(), .write_data(), .frame_end(), .frame_reject(), .beat_bytes(),
      .heard(), .request(), .heartbeat(), .frame_meta(), .*
  );

  // Numbers with a bit more, which do not wrap; the module's are their low bits.
  typedef logic [32:0] long_t;

  logic  past_reg = 1'b0;
  long_t base_reg;
  long_t acked_reg;
  long_t handed_reg;
  long_t judged_reg;   // of the header that was judged last
  long_t watched_reg;  // any one, always the same
  logic [15:0] window_reg;
  logic  is_taken_reg;
  logic  is_handed_reg;
  logic  late_reg;     // others were taken before it

  function automatic logic held(seq_t seq);
    return dut.held.lap_mem[seq[PlaceBits-1:0]] == seq[PlaceBits];
  endfunction

  wire long_t granted = handed_reg + {17'd0, window_reg};

  // The parser has judged a header, has found nothing wrong with it, and its frame of a vector has not ended.
  wire begun   = (parser.valid_reg && !parser.first_reg) || (parser.inside_reg && !(parser.valid_reg && parser.first_reg));
  wire pending = (begun || parser.alone_reg) && !parser.merged_reg && parser.reject_reg == REJECT_NONE;

  // ---- frames that are alike ---------------------------------------------------------------------------------
  localparam logic [15:0] Payload  = 16'd64;
  localparam logic [15:0] IpLength = Ipv4Bytes + UdpBytes + 16'(HeaderBytes) + Payload;
  localparam logic [15:0] Checksum = 16'hffff - ({Ipv4FirstByte, 8'd0} + IpLength + {8'd0, Ipv4ProtocolUdp});

  header_t      vector;
  logic [511:0] frame;  // first byte of the frame in the high bits
  logic [511:0] header_beat;

  always_comb begin
    vector         = '0;
    vector.version = 4'(Version);
    vector.ptype   = PACKET_TYPE_PARAM;
    vector.gen     = 16'd1;
    vector.dtype   = DATA_TYPE_BYTES;
    vector.lanes   = Payload;
    vector.seq     = any[31:0];
    frame = {
      96'd0, EtherTypeIpv4,
      Ipv4FirstByte, 8'd0, IpLength, 40'd0, Ipv4ProtocolUdp, Checksum, 64'd0,
      32'd0, IpLength - Ipv4Bytes, 16'd0,
      vector
    };
    for (int unsigned i = 0; i < 64; i++) header_beat[8*i+:8] = frame[511-8*i-:8];
  end

  if (ALIKE != 0) begin : gen_alike
    always_ff @(posedge clk) begin
      assume (address == '0 && {tx_gen, rx_gen, tx_run, sums, pairs, carry} == {16'd0, 16'd1, 4'd0});
      assume (!impossible && !s_axis_tuser && s_axis_tkeep == '1 && s_axis_tdata == (parser.inside_reg ? '0 : header_beat));
      assume (!s_axis_tvalid || s_axis_tlast == parser.inside_reg);
    end
  end

  // Of the next WINDOW numbers none beyond the credit is taken for held; before a stream none is, as far as the sweep has come.
  logic none_beyond;
  logic none_left;

  always_comb begin
    none_beyond = 1'b1;
    none_left   = 1'b1;
    for (int unsigned i = 0; i < WINDOW; i++) begin
      none_beyond &= acked_reg + 33'(i) < granted || !held(ack + 32'(i));
      none_left   &= !dut.held.ready_reg || !held(base + 32'(i));
      none_left   &= PlaceBits'(i) >= dut.held.sweep_reg
                     || dut.held.lap_mem[i] != (base[PlaceBits] ^ (PlaceBits'(i) < base[PlaceBits-1:0]));
    end
  end

  always_ff @(posedge clk) begin
    past_reg    <= 1'b1;
    watched_reg <= past_reg ? watched_reg : any;
    if (!past_reg) assume (rst);
    assume (window != 16'd0 && window <= 16'(WINDOW));
    assume (!past_reg || !(enable && $past(enable)) || ($stable(base) && $stable(window)));
    assume (!pop || ready);
    // a stream ends before its numbers come again
    assume (acked_reg < 33'h1_ffff_0000);

    if (parser.present) judged_reg <= {acked_reg[32] ^ (present_seq < ack), present_seq};
    if (!run || rst) begin
      base_reg   <= {1'b0, base};
      acked_reg  <= {1'b0, base};
      handed_reg <= {1'b0, base};
      window_reg <= window;
      {is_taken_reg, is_handed_reg, late_reg} <= '0;
    end else begin
      acked_reg  <= acked_reg + 33'(dut.advance);
      handed_reg <= handed_reg + 33'(pop);
      if (take && judged_reg == watched_reg) is_taken_reg <= 1'b1;
      if (pop && handed_reg == watched_reg) is_handed_reg <= 1'b1;
      if (take && judged_reg > watched_reg && !is_taken_reg) late_reg <= 1'b1;
    end

    if (past_reg && run) begin
      once : assert (!(take && judged_reg == watched_reg && is_taken_reg));
      only_granted : assert (!take || (judged_reg >= acked_reg && judged_reg < granted));
      handed_once : assert (!(pop && handed_reg == watched_reg) || (!is_handed_reg && (is_taken_reg || watched_reg < base_reg)));
      in_order : assert (is_handed_reg == (watched_reg >= base_reg && watched_reg < handed_reg));
      acknowledged_only_taken : assert (is_taken_reg || watched_reg < base_reg || watched_reg >= acked_reg);
      in_window : assert (base_reg <= handed_reg && handed_reg <= acked_reg && acked_reg <= granted);
      as_said : assert (ack == acked_reg[31:0] && consumed == handed_reg[31:0] && credit == granted[31:0]
                        && (!take || take_seq == judged_reg[31:0]));
      // what makes it inductive: a place says whether its number, one of the next WINDOW, is taken
      what_is_taken : assert (is_taken_reg == (watched_reg >= base_reg
                                               && (watched_reg < acked_reg
                                                   || (watched_reg < acked_reg + 33'(WINDOW) && held(watched_reg[31:0])))));
      none_beyond_the_credit : assert (none_beyond);
      swept : assert (dut.held.ready_reg);
      room : assert (window_reg != '0 && window_reg <= 16'(WINDOW));
      if (pending && begun) begin
        not_twice : assert (parser.seq_reg == judged_reg[31:0] && !held(judged_reg[31:0]));
        expected : assert (acked_reg <= judged_reg && judged_reg < granted);
      end
    end
    if (past_reg && !run && enable) begin
      none_from_before : assert (!(dut.held.ready_reg || dut.held.sweep_reg != '0) || parser.merged_reg
                                 || parser.reject_reg != REJECT_NONE);
      none_before_the_stream : assert (none_left);
    end
    if (past_reg) a_frame_goes_on : assert (!parser.valid_reg || parser.inside_reg == !parser.last_reg);
    if (past_reg) has_beats : assert (!pending || parser.payload_beats_reg != 8'd0);

    out_of_order : cover (past_reg && run && is_handed_reg && late_reg);
    wraps : cover (past_reg && run && is_handed_reg && handed_reg[32]);
    full : cover (past_reg && run && acked_reg == granted && window_reg == 16'd2);
    finds_missing : cover (past_reg && run && missing_valid && missing_ready);
  end

endmodule : consumer_fv
