// All-reduce of 8 lanes through the slots of p4sgd.p4: partial activations in, full activations out, in order.
// A frame's first beat is offered a clock after its lanes were taken; a sum is handed over two clocks after its frame ended.
`include "ports.svh"

module round_client
  import glm_numbers_pkg::*;
  import glm_pkg::*;
  import serial_pkg::*;
  import transport_pkg::*;
#(
    // number of rounds in flight, a power of two, 2..32768
    parameter int unsigned SLOTS = RoundSlots
) (
    input  logic            clk,
    input  logic            rst,
    input  rounds_t         rounds,

    input  lanes_t          s_lanes,
    // a lane was cut
    input  logic            s_saturated,
    input  logic            s_valid,
    output logic            s_ready,

    output lanes_t          m_lanes,
    // a lane of any worker was cut
    output logic            m_saturated,
    output logic            m_valid,
    input  logic            m_ready,

    `AXIS_FRAME_OUT_PORTS(m_axis),

    `AXIS_FRAME_IN_PORTS(s_axis),

    output round_counts_t   counts,
    output logic            idle,
    output seq_t            next
);

  localparam int unsigned SlotBits = $clog2(SLOTS);
  localparam int unsigned PlaceBits = $bits(lanes_t) + 1;

  logic    send_valid;
  logic    send_ready;
  logic    send_ack;
  logic    send_fresh;
  logic    send_again;
  seq_t    send_seq;
  seq_t    lacks;
  logic    frame_end;
  reject_t frame_reject;
  logic    heard;
  logic    heard_sum;
  logic    heard_saturated;
  seq_t    heard_seq;
  lanes_t  heard_lanes;
  logic    take_sum;
  logic    take_confirmation;
  logic    hand_valid;
  logic    hand_ready;
  seq_t    hand_seq;

  assign s_ready = send_ready && send_fresh;

  round_slots #(.SLOTS(SLOTS)) in_flight (
      .clk, .rst, .enable(rounds.enable), .first_seq(rounds.base_seq), .slots(rounds.slots), .rto(rounds.rto),
      .fresh_valid(s_valid),
      .send_valid, .send_seq, .send_ack, .send_fresh, .send_again, .send_ready, .lacks,
      .heard, .heard_sum, .heard_seq, .take_sum, .take_confirmation,
      .hand_valid, .hand_seq, .hand_ready,
      .idle, .next
  );

  // ---- partial activations, until their sum is here -----------------------------------------------------------------
  logic [PlaceBits-1:0] fresh_reg;
  logic                 is_fresh_reg;
  logic [PlaceBits-1:0] again;
  logic [PlaceBits-1:0] sending;

  meta_ram #(.WIDTH(PlaceBits), .DEPTH(SLOTS)) partial (
      .clk,
      .write(s_valid && s_ready), .write_address(send_seq[SlotBits-1:0]), .write_data({s_saturated, s_lanes}),
      .read(send_valid && send_ready), .read_address(send_seq[SlotBits-1:0]), .read_data(again)
  );

  always_ff @(posedge clk) begin
    if (send_valid && send_ready) begin
      is_fresh_reg <= send_fresh;
      fresh_reg    <= {s_saturated, s_lanes};
    end
  end

  assign sending = is_fresh_reg ? fresh_reg : again;

  round_sender sender (
      .clk, .rst, .rounds,
      .send_valid, .send_seq, .send_ack, .send_again, .lacks, .send_ready,
      .lanes(sending[PlaceBits-2:0]), .saturated(sending[PlaceBits-1]),
      `AXIS_FRAME_CONNECT(m_axis, m_axis)
  );

  // ---- sums, until those before them are here -----------------------------------------------------------------------
  round_parser parser (
      .clk, .rst, .rounds,
      `AXIS_FRAME_CONNECT(s_axis, s_axis),
      .frame_end, .frame_reject,
      .heard, .heard_sum, .heard_seq, .heard_lanes, .heard_saturated
  );

  logic valid_reg;

  assign hand_ready = !valid_reg || m_ready;
  assign m_valid    = valid_reg;

  meta_ram #(.WIDTH(PlaceBits), .DEPTH(SLOTS)) full (
      .clk,
      .write(take_sum), .write_address(heard_seq[SlotBits-1:0]), .write_data({heard_saturated, heard_lanes}),
      .read(hand_valid && hand_ready), .read_address(hand_seq[SlotBits-1:0]), .read_data({m_saturated, m_lanes})
  );

  always_ff @(posedge clk) begin
    if (rst || !rounds.enable) valid_reg <= 1'b0;
    else if (hand_ready) valid_reg <= hand_valid;
  end

  stream_check #(.WIDTH(PlaceBits)) check_m (
      .clk, .rst(rst || !rounds.enable), .data({m_saturated, m_lanes}), .valid(m_valid), .ready(m_ready)
  );

  // ---- what happened -------------------------------------------------------------------------------------------------
  round_counts_t counts_reg;

  assign counts = counts_reg;

  always_ff @(posedge clk) begin
    if (rst) counts_reg <= '0;
    else begin
      counts_reg.begun     <= counts_reg.begun + 32'(s_valid && s_ready);
      counts_reg.repeated  <= counts_reg.repeated + 32'(send_valid && send_ready && send_again);
      counts_reg.sums      <= counts_reg.sums + 32'(take_sum);
      counts_reg.confirmed <= counts_reg.confirmed + 32'(take_confirmation);
      counts_reg.unasked   <= counts_reg.unasked + 32'(heard && !take_sum && !take_confirmation);
      counts_reg.refused   <= counts_reg.refused + 32'(frame_end && frame_reject != REJECT_NONE);
      if (frame_end && frame_reject != REJECT_NONE) counts_reg.reason <= frame_reject;
    end
  end

  wire unused = &{1'b0, hand_seq[31:SlotBits]};

endmodule : round_client
