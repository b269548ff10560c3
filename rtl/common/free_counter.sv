// Clocks since reset, for time stamps: wraps, so take differences.
module free_counter #(
    parameter int unsigned WIDTH = 32
) (
    input  logic             clk,
    input  logic             rst,
    output logic [WIDTH-1:0] now
);

  always_ff @(posedge clk) begin
    if (rst) now <= '0;
    else now <= now + 1'b1;
  end

endmodule : free_counter
