// Tells the sender when to resend: after a timeout without progress.  The timeout doubles each time up to its limit and
// falls back with progress.  Each worker adds a delay of its own, so that not all resend at once (LuWu, section 3.2.3).
module retransmit_timer
  import transport_pkg::*;
(
    input  logic             clk,
    // low: the timer is at rest
    input  logic             run,
    input  timing_settings_t timing,
    // a frame is in flight
    input  logic             outstanding,
    // the acknowledged sequence number ma has moved
    input  logic             progress,
    // high for one clock: the sender resends
    output logic             timeout
);

  logic [31:0] rto_reg;
  logic [32:0] left_reg;  // a bit more than its parts, so that no sum of settings wraps
  logic        timeout_reg;

  assign timeout = timeout_reg;

  wire [31:0] doubled = rto_reg[31] ? timing.rto_most : rto_reg << 1;
  wire [31:0] backoff = doubled > timing.rto_most ? timing.rto_most : doubled;
  wire        over    = outstanding && left_reg == 33'd0;
  wire [31:0] delay   = timing.resend_delay | TimerFloor;

  wire unused = &{1'b0, timing.heartbeat_interval};

  always_ff @(posedge clk) begin
    timeout_reg <= run && over && !progress;
    if (!run || progress || !outstanding) begin
      rto_reg  <= timing.rto;
      left_reg <= {1'b0, timing.rto} + {1'b0, delay};
    end else if (over) begin
      rto_reg  <= backoff;
      left_reg <= {1'b0, backoff} + {1'b0, delay};
    end else begin
      left_reg <= left_reg - 33'd1;
    end
  end

endmodule : retransmit_timer
