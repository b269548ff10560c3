// Sends the frames of rounds: a header's beat, and for partial activations a beat of 8 lanes behind it.  The first
// beat is offered in the clock after the round was.
`include "ports.svh"

module round_sender
  import catchment_wire_pkg::*;
  import glm_numbers_pkg::*;
  import glm_pkg::*;
  import serial_pkg::*;
(
    input  logic         clk,
    input  logic         rst,
    input  rounds_t      rounds,

    input  logic         send_valid,
    input  seq_t         send_seq,
    input  logic         send_ack,
    input  logic         send_again,
    input  seq_t         lacks,
    output logic         send_ready,
    // with the next clock: the round's lanes, and whether one was cut
    input  lanes_t       lanes,
    input  logic         saturated,

    `AXIS_FRAME_OUT_PORTS(m_axis)
);

  localparam int unsigned PayloadBytes = Banks * LaneBits / 8;

  logic         head_reg;    // the header's beat is at the output
  logic         tail_reg;    // the lanes' beat is at the output
  logic         vector_reg;  // the frame has lanes
  logic [511:0] head_beat;
  logic [511:0] in_place;

  wire take = send_valid && send_ready;

  assign send_ready = (!head_reg && !tail_reg) || (m_axis_tready && m_axis_tlast);

  header_t header;

  always_comb begin
    header         = '0;
    header.version = 4'(Version);
    header.ptype   = send_ack ? PACKET_TYPE_ACK : PACKET_TYPE_PA;
    header.flags   = FLAG_ACKV | (send_again ? FLAG_RETX : 8'd0);
    header.gen     = rounds.gen;
    header.wid     = rounds.wid;
    header.dtype   = send_ack ? 8'd0 : DATA_TYPE_INT32;
    header.lanes   = send_ack ? 16'd0 : 16'(Banks);
    header.seq     = send_seq;
    header.ack     = lacks;
  end

  header_builder builder (
      .clk,
      .address(rounds.address),
      .header,
      .payload_bytes(send_ack ? 16'd0 : 16'(PayloadBytes)),
      .enable(take),
      .beat(head_beat),
      .frame_bytes()
  );

  always_ff @(posedge clk) begin
    if (take) vector_reg <= !send_ack;
    if (rst) begin
      head_reg <= 1'b0;
      tail_reg <= 1'b0;
    end else begin
      if (take) head_reg <= 1'b1;
      else if (m_axis_tready) head_reg <= 1'b0;
      if (head_reg && m_axis_tready) tail_reg <= vector_reg;
      else if (m_axis_tready) tail_reg <= 1'b0;
    end
  end

  // The flag is known with the lanes, a clock after the header was taken: byte 43 of the frame.
  always_comb begin
    in_place = head_beat;
    if (vector_reg && saturated) in_place[8*43+:8] = head_beat[8*43+:8] | FLAG_SAT;
    m_axis_tdata = head_reg ? in_place : '0;
    if (!head_reg) begin
      for (int unsigned i = 0; i < PayloadBytes; i++) m_axis_tdata[8*i+:8] = lanes[(i/4)][8*(3-i%4)+:8];
    end
  end

  assign m_axis_tkeep  = head_reg ? '1 : 64'((65'd1 << PayloadBytes) - 65'd1);
  assign m_axis_tlast  = head_reg ? !vector_reg : 1'b1;
  assign m_axis_tuser  = 1'b0;
  assign m_axis_tvalid = head_reg || tail_reg;

  wire unused = &{1'b0, rounds.enable, rounds.base_seq, rounds.slots, rounds.rto};

  axis_check check_m (
      .clk, .rst, .tdata(m_axis_tdata), .tkeep(m_axis_tkeep), .tlast(m_axis_tlast), .tuser(m_axis_tuser),
      .tvalid(m_axis_tvalid), .tready(m_axis_tready)
  );

endmodule : round_sender
