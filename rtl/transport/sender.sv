// The sender's side of the protocol decides which frame may or must be sent next (docs/explanation/protocol.md, "Sender").
//
//   ma ..................................... next ............ end
//   everyone has    [ma, next) is in flight,   [next, end) waits in the ring and is sent while credit and window allow
//   all below ma    kept until acknowledged
module sender
  import serial_pkg::*;
  import transport_pkg::*;
#(
    // places of the ring, a power of two
    parameter int unsigned WINDOW = 1024
) (
    input  logic             clk,
    // low: the stream has not begun
    input  logic             run,
    input  stream_settings_t settings,
    input  timing_settings_t timing,
    // number of vectors that may be in flight
    input  logic [15:0]      window,

    // a vector has come into the ring, at its place end mod WINDOW
    input  logic             put,
    output logic             ring_full,
    // the reader has no vector under way: what is acknowledged may be overwritten
    input  logic             reader_idle,

    // ack and credit of arriving frames; ack_tracker explains these ports
    input  logic             present,
    input  seq_t             present_ack,
    input  seq_t             present_credit,
    output logic             impossible,
    input  logic             commit,
    // a receiver lacks frame request_seq
    input  logic             request,
    input  seq_t             request_seq,

    // the frame to send next
    output logic             m_valid,
    output seq_t             m_seq,
    // that frame was sent before
    output logic             m_again,
    input  logic             m_ready,

    output seq_t             acked,
    output seq_t             next,
    output seq_t             end_seq,
    output seq_t             credit,
    output logic             progress,
    output logic             timeout,
    output logic             lacks_credit,
    output logic             lacks_window
);

  localparam int unsigned PlaceBits = $clog2(WINDOW);

  seq_t                 next_reg;
  seq_t                 end_reg;
  logic [PlaceBits:0]   freed_reg;  // acked, as far as the ring is concerned

  logic open;
  logic again;
  seq_t again_seq;

  assign next      = next_reg;
  assign end_seq   = end_reg;
  assign ring_full = (end_reg[PlaceBits:0] ^ freed_reg) == {1'b1, {PlaceBits{1'b0}}};
  assign m_valid   = run && (again || open);
  assign m_again   = again;
  assign m_seq     = again ? again_seq : next_reg;

  always_ff @(posedge clk) begin
    if (!run) begin
      next_reg  <= settings.base_seq;
      end_reg   <= settings.base_seq;
      freed_reg <= settings.base_seq[PlaceBits:0];
    end else begin
      if (put) end_reg <= end_reg + 32'd1;
      if (m_valid && m_ready && !again) next_reg <= next_reg + 32'd1;
      if (reader_idle) freed_reg <= acked[PlaceBits:0];
    end
  end

  ack_tracker tracker (
      .clk,
      .run,
      .base(settings.base_seq),
      .window,
      .slots(settings.slots),
      .next(next_reg),
      .present,
      .present_ack,
      .present_credit,
      .impossible,
      .commit,
      .acked,
      .credit,
      .progress
  );

  credit_gate gate (
      .acked,
      .next(next_reg),
      .end_seq(end_reg),
      .credit,
      .window,
      .open,
      .lacks_credit,
      .lacks_window
  );

  retransmit_timer timer (
      .clk,
      .run,
      .timing,
      .outstanding(acked != next_reg),
      .progress,
      .timeout
  );

  retransmitter repeats (
      .clk,
      .run,
      .base(settings.base_seq),
      .acked,
      .next(next_reg),
      .timeout,
      .progress,
      .request,
      .request_seq,
      .m_valid(again),
      .m_seq(again_seq),
      .m_ready(m_ready && run)
  );

  wire unused = &{1'b0, settings.enable, settings.gen, settings.window};

endmodule : sender
