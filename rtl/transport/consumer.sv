// The receiver's side of the protocol decides which frame to take, what to acknowledge and what is missing
// (docs/explanation/protocol.md, "Consumer").  Each sequence number is taken once and handed over once, in order.
//
//   consumed ......... ack ......... highest ......... consumed + window = credit
//   handed over        received and   one past the last that has arrived
//   below              not yet taken
module consumer
  import serial_pkg::*;
#(
    // places of the receive ring, a power of two
    parameter int unsigned WINDOW = 1024
) (
    input  logic        clk,
    input  logic        rst,
    // rises: the stream begins at `base`
    input  logic        enable,
    input  seq_t        base,
    // number of frames that the ring may hold, 1..WINDOW
    input  logic [15:0] window,
    // the reader of the ring has no vector under way
    input  logic        reader_idle,
    // the stream has begun
    output logic        run,

    // the sequence number of a header that is being checked: its frame is already here; it lies beyond the credit
    input  seq_t        present_seq,
    output logic        repeated,
    output logic        outside,
    // the frame take_seq is good and written to its place of the ring
    input  logic        take,
    input  seq_t        take_seq,

    // `ready`: the oldest vector may be read; `pop`: the ring's reader has read it
    output logic        ready,
    input  logic        pop,

    output seq_t        ack,
    output seq_t        consumed,
    output seq_t        credit,
    output seq_t        highest,

    // a frame that is missing although a later one has arrived; each such frame is offered once
    output logic        missing_valid,
    output seq_t        missing_seq,
    input  logic        missing_ready
);

  seq_t ack_reg;
  seq_t consumed_reg;
  seq_t credit_reg;
  seq_t highest_reg;
  logic run_reg;

  logic swept;
  logic held_present;
  logic held_next;
  logic held_missing;

  seq_t search_reg;      // the search for missing frames goes on from here
  seq_t search_end_reg;  // the search ends before this sequence number
  logic missing_reg;
  seq_t missing_seq_reg;

  held_bits #(.WINDOW(WINDOW)) held (
      .clk,
      .rst,
      .prepare(enable),
      .base,
      .ready(swept),
      .hold(take),
      .hold_seq(take_seq),
      .seq_a(present_seq),
      .held_a(held_present),
      .seq_b(ack_reg),
      .held_b(held_next),
      .seq_c(search_reg),
      .held_c(held_missing)
  );

  // ---- what arrives ------------------------------------------------------------------------------------------
  wire granted = present_seq - ack_reg < credit_reg - ack_reg;
  wire behind = newer(ack_reg, present_seq);

  assign run      = run_reg;
  assign repeated = behind || (granted && held_present);
  assign outside  = !granted;

  // ---- what moves --------------------------------------------------------------------------------------------
  // The place of a full window's first frame is the place of its end, and says another lap.
  wire advance = run_reg && held_next;

  assign ready    = run_reg && (consumed_reg != ack_reg || held_next);
  assign ack      = ack_reg;
  assign consumed = consumed_reg;
  assign credit   = credit_reg;
  assign highest  = highest_reg;

  // ---- what is missing ---------------------------------------------------------------------------------------
  wire ahead     = take && newer(take_seq, highest_reg);
  wire searching = search_reg != search_end_reg;
  wire look      = searching && (!missing_reg || missing_ready);

  assign missing_valid = missing_reg;
  assign missing_seq   = missing_seq_reg;

  always_ff @(posedge clk) begin
    if (look) missing_seq_reg <= search_reg;
    if (rst || !enable) run_reg <= 1'b0;
    else if (swept && reader_idle) run_reg <= 1'b1;

    if (!run_reg) begin
      ack_reg        <= base;
      consumed_reg   <= base;
      credit_reg     <= base + {16'd0, window};
      highest_reg    <= base;
      search_reg     <= base;
      search_end_reg <= base;
      missing_reg    <= 1'b0;
    end else begin
      if (advance) ack_reg <= ack_reg + 32'd1;
      if (pop) begin
        consumed_reg <= consumed_reg + 32'd1;
        credit_reg   <= credit_reg + 32'd1;
      end
      if (take && !newer(highest_reg, take_seq)) highest_reg <= take_seq + 32'd1;
      if (ahead) begin
        if (!searching) search_reg <= highest_reg;
        search_end_reg <= take_seq;
      end
      if (look) search_reg <= search_reg + 32'd1;
      if (missing_ready || !missing_reg) missing_reg <= look && !held_missing && !newer(ack_reg, search_reg);
    end
  end

endmodule : consumer
