// How long ago was the last restart?  `expired` rises `interval` ticks after it, and stays until the next.
module timer #(
    parameter int unsigned WIDTH = 32
) (
    input  logic             clk,
    input  logic             rst,

    // starts again from zero in this clock
    input  logic             restart,
    // counts in this clock
    input  logic             tick,
    // may change at any time; 0: never expires
    input  logic [WIDTH-1:0] interval,

    output logic             expired
);

  logic [WIDTH-1:0] elapsed_reg;

  assign expired = interval != '0 && elapsed_reg >= interval;

  always_ff @(posedge clk) begin
    if (rst || restart) elapsed_reg <= '0;
    // Stands still at its end rather than beginning anew.
    else if (tick && !(&elapsed_reg)) elapsed_reg <= elapsed_reg + 1'b1;
  end

endmodule : timer
