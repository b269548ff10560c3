// Counts ticks since its last restart.  `expired` rises `interval` ticks after a restart and stays until the next one.
module timer #(
    parameter int unsigned WIDTH = 32
) (
    input  logic             clk,
    input  logic             rst,

    // the timer starts again from zero in this clock
    input  logic             restart,
    // the timer counts one tick in this clock
    input  logic             tick,
    // ticks from a restart to `expired`; may change at any time; 0: the timer never expires
    input  logic [WIDTH-1:0] interval,

    output logic             expired
);

  logic [WIDTH-1:0] elapsed_reg;

  assign expired = interval != '0 && elapsed_reg >= interval;

  always_ff @(posedge clk) begin
    if (rst || restart) elapsed_reg <= '0;
    // The counter stands still at its largest value rather than wrapping to zero.
    else if (tick && !(&elapsed_reg)) elapsed_reg <= elapsed_reg + 1'b1;
  end

endmodule : timer
