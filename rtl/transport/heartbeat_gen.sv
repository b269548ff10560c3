// Decides when a receiver sends a heartbeat: each interval; and at once when a message ended, a quarter of the window
// moved, the senders have used up their credit, a duplicate shows that they missed the last heartbeat, or a frame is
// missing.
module heartbeat_gen
  import serial_pkg::*;
  import transport_pkg::*;
(
    input  logic        clk,
    // low: the stream has not begun
    input  logic        run,
    input  seq_t        base,
    input  logic [15:0] window,
    input  logic [31:0] interval,

    input  seq_t        ack,
    input  seq_t        credit,
    // the sequence number after that of the last frame that has arrived
    input  seq_t        highest,
    // high for one clock: a message has ended; a frame has arrived a second time
    input  logic        message_end,
    input  logic        duplicate,
    // a data frame with the same ack and credit has left
    input  logic        carried,

    // the receiver lacks frame missing_seq and asks for it
    input  logic        missing_valid,
    input  seq_t        missing_seq,
    output logic        missing_ready,

    output logic        m_valid,
    // a data frame that carries the same ack and credit may take the heartbeat's place
    output logic        m_optional,
    output logic        m_missing,
    output seq_t        m_seq,
    input  logic        m_ready
);

  seq_t        said_ack_reg;
  seq_t        said_credit_reg;
  logic [31:0] left_reg;
  logic        elapsed_reg;
  logic        flush_reg;   // a message has ended since ack and credit last left
  logic        repeat_reg;  // a duplicate has come since ack and credit last left
  logic        due_reg;

  wire [31:0] ack_moved    = ack - said_ack_reg;
  wire [31:0] credit_moved = credit - said_credit_reg;
  wire [31:0] quarter      = {18'd0, window[15:2]};
  wire        changed      = ack_moved != 32'd0 || credit_moved != 32'd0;
  wire        much         = ack_moved >= quarter || credit_moved >= quarter;
  wire        stalled      = highest == said_credit_reg;
  wire        sent         = m_valid && m_ready;
  wire        said         = sent || carried;

  assign m_valid       = run && (due_reg || missing_valid);
  assign m_optional    = !missing_valid && !elapsed_reg;
  assign m_missing     = missing_valid;
  assign m_seq         = missing_valid ? missing_seq : ack;
  assign missing_ready = m_ready && run;

  always_ff @(posedge clk) begin
    if (!run) begin
      said_ack_reg    <= base;
      said_credit_reg <= base + {16'd0, window};
      left_reg        <= 32'd0;
      elapsed_reg     <= 1'b1;  // the first heartbeat is due at once: the switch merges only what it has heard
      flush_reg       <= 1'b0;
      repeat_reg      <= 1'b0;
      due_reg         <= 1'b0;
    end else begin
      if (said) begin
        said_ack_reg    <= ack;
        said_credit_reg <= credit;
      end
      if (sent) begin
        left_reg    <= interval | TimerFloor;
        elapsed_reg <= 1'b0;
      end else if (left_reg != 32'd0) begin
        left_reg    <= left_reg - 32'd1;
      end else begin
        elapsed_reg <= 1'b1;
      end
      flush_reg  <= message_end || (flush_reg && !said);
      repeat_reg <= duplicate || (repeat_reg && !said);
      due_reg    <= !sent && (elapsed_reg || (!said && (repeat_reg || (changed && (much || stalled || flush_reg)))));
    end
  end

endmodule : heartbeat_gen
