// Measures the clocks from the first transmission of a frame to its acknowledgement, one frame at a time.  After a
// timeout an acknowledgement could belong to either transmission, so that frame is not measured.
module round_trip_meter
  import serial_pkg::*;
#(
    // bits of the sum
    parameter int unsigned WIDTH = 48
) (
    input  logic             clk,
    // the results return to their initial values
    input  logic             rst,
    // low: nothing is in flight
    input  logic             run,

    input  logic             sent,
    input  seq_t             sent_seq,
    input  seq_t             acked,
    input  logic             timeout,

    output logic [31:0]      count,
    output logic [31:0]      least,  // all ones before the first measurement
    output logic [31:0]      most,
    output logic [WIDTH-1:0] sum
);

  logic        timing_reg;
  seq_t        seq_reg;
  logic [31:0] clocks_reg;
  logic        done_reg;
  logic [31:0] count_reg;
  logic [31:0] least_reg;
  logic [31:0] most_reg;
  logic [WIDTH-1:0] sum_reg;

  assign count = count_reg;
  assign least = least_reg;
  assign most  = most_reg;
  assign sum   = sum_reg;

  wire arrived = timing_reg && newer(acked, seq_reg);

  always_ff @(posedge clk) begin
    if (!run || timeout) timing_reg <= 1'b0;
    else if (!timing_reg) timing_reg <= sent && !done_reg;
    else if (arrived) timing_reg <= 1'b0;

    if (!timing_reg && !done_reg) seq_reg <= sent_seq;
    if (timing_reg) clocks_reg <= clocks_reg + 32'd1;
    else if (!done_reg) clocks_reg <= 32'd0;

    if (rst) begin
      done_reg  <= 1'b0;
      count_reg <= 32'd0;
      least_reg <= '1;
      most_reg  <= 32'd0;
      sum_reg   <= '0;
    end else begin
      done_reg <= arrived && run && !timeout;
      if (done_reg) begin
        count_reg <= count_reg + 32'd1;
        sum_reg   <= sum_reg + WIDTH'(clocks_reg);
        if (clocks_reg < least_reg) least_reg <= clocks_reg;
        if (clocks_reg > most_reg) most_reg <= clocks_reg;
      end
    end
  end

endmodule : round_trip_meter
