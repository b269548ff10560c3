// Chooses the frames in flight that are sent again, after a timeout of the sender or at a receiver's request.
//   timeout: ma alone, and while the acks that come back show loss, twice as many each time up to what was in flight
//            when the timer ran out: most timeouts are late acks, and a window sent again would make them later
//   request: the frame that a receiver lacks, once per timeout
module retransmitter
  import serial_pkg::*;
#(
    // number of requests that may wait, a power of two; more are dropped, for a request is a hint
    parameter int unsigned REQUESTS = 16
) (
    input  logic        clk,
    // low: nothing is in flight
    input  logic        run,
    input  seq_t        base,
    input  seq_t        acked,
    input  seq_t        next,

    input  logic        timeout,
    // `acked` has just moved forward
    input  logic        progress,
    input  logic        request,
    input  seq_t        request_seq,

    // the next frame to send again, one of acked .. next - 1
    output logic        m_valid,
    output seq_t        m_seq,
    input  logic        m_ready
);

  localparam int unsigned Bits = $clog2(REQUESTS);

  // ---- after a timeout: [resend, stop) now, more of [.., recover) when acks come ---------------------------
  seq_t        resend_reg;
  seq_t        stop_reg;
  seq_t        recover_reg;
  logic [15:0] burst_reg;  // 0: no recovery is under way

  wire         behind     = newer(acked, resend_reg);
  wire         more       = burst_reg != 16'd0 && newer(stop_reg, resend_reg) && !behind;
  // how far they lie ahead of what is acknowledged
  wire seq_t   sent       = stop_reg - acked;
  wire seq_t   all        = recover_reg - acked;
  // acknowledged beyond what was sent again: late, not lost
  wire         late       = sent[31];
  wire         done       = all == 32'd0 || all[31];
  wire  [15:0] twice      = burst_reg[15] ? burst_reg : burst_reg << 1;
  wire seq_t   reach      = {16'd0, twice} < all ? {16'd0, twice} : all;
  wire         reach_more = {16'd0, twice} > sent && all > sent;

  // ---- requests --------------------------------------------------------------------------------------------
  // a clock late: a frame's length has just been found right, and its number is compared with three others
  logic            request_reg;
  seq_t            request_seq_reg;
  seq_t            asked_reg;  // all frames below were asked for, or are of no interest
  seq_t            queue_mem[REQUESTS];
  logic [Bits:0]   write_reg;
  logic [Bits:0]   read_reg;

  wire             queued = write_reg != read_reg;
  wire             full   = (write_reg ^ read_reg) == {1'b1, {Bits{1'b0}}};
  wire             heed   = request_reg && between(request_seq_reg, acked, next) && !newer(asked_reg, request_seq_reg) &&
                            !full;

  // ---- the frame to send -----------------------------------------------------------------------------------
  logic head_valid_reg;
  seq_t head_reg;

  wire  useful     = between(head_reg, acked, next);
  wire  load       = !head_valid_reg || m_ready || !useful;
  wire  load_range = load && more;
  wire  load_queue = load && !more && queued;

  assign m_valid = head_valid_reg && useful;
  assign m_seq   = head_reg;

  always_ff @(posedge clk) begin
    request_reg     <= request && run;
    request_seq_reg <= request_seq;
    if (heed) queue_mem[write_reg[Bits-1:0]] <= request_seq_reg;
    if (load) head_reg <= more ? resend_reg : queue_mem[read_reg[Bits-1:0]];

    if (!run) begin
      resend_reg     <= base;
      stop_reg       <= base;
      recover_reg    <= base;
      burst_reg      <= 16'd0;
      asked_reg      <= base;
      write_reg      <= '0;
      read_reg       <= '0;
      head_valid_reg <= 1'b0;
    end else if (timeout) begin
      resend_reg     <= acked;
      stop_reg       <= acked + 32'd1;
      recover_reg    <= next;
      burst_reg      <= 16'd1;
      asked_reg      <= acked;
      write_reg      <= '0;
      read_reg       <= '0;
      head_valid_reg <= 1'b0;
    end else begin
      if (load) head_valid_reg <= more || queued;
      if (behind) resend_reg <= acked;
      else if (load_range) resend_reg <= resend_reg + 32'd1;
      if (load_queue) read_reg <= read_reg + 1'b1;
      if (heed) write_reg <= write_reg + 1'b1;
      if (heed) asked_reg <= request_seq_reg + 32'd1;
      else if (newer(acked, asked_reg)) asked_reg <= acked;
      if (progress && burst_reg != 16'd0) begin
        burst_reg <= late || done ? 16'd0 : twice;
        if (reach_more) stop_reg <= acked + reach;
      end
    end
  end

endmodule : retransmitter
