// Combines two entries lane by lane: sums that wrap around, or signed maxima.  Combinational.
module lane_alu #(
    // 32-bit lanes of an entry
    parameter int unsigned LANES = 16
) (
    // 0: sum, 1: maximum
    input  logic                   maximum,
    input  logic [LANES-1:0][31:0] a,
    input  logic [LANES-1:0][31:0] b,
    output logic [LANES-1:0][31:0] y
);

  for (genvar i = 0; i < LANES; i++) begin : gen_lane
    wire a_larger = $signed(a[i]) > $signed(b[i]);
    assign y[i] = maximum ? (a_larger ? a[i] : b[i]) : a[i] + b[i];
  end

endmodule : lane_alu
