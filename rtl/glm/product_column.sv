// One lane's products over the banks, summed as they go from multiplier to multiplier: bank k's factors come k clocks after
// bank 0's, and the sum is there two clocks after bank 7's.  Shaped for a column of DSP48E2.
module product_column
  import glm_numbers_pkg::*;
  import glm_pkg::*;
(
    input  logic                         clk,
    input  scales_t                      scales,
    input  logic [Banks-1:0][Planes-1:0] features,
    output gradient_t                    sum
);

  logic signed [ScaleBits+Planes:0] product_reg[Banks];
  gradient_t                        sum_reg[Banks];

  always_ff @(posedge clk) begin
    for (int unsigned k = 0; k < Banks; k++) begin
      product_reg[k] <= $signed(scales[k]) * $signed({1'b0, features[k]});
    end
    sum_reg[0] <= GradientBits'(product_reg[0]);
    for (int unsigned k = 1; k < Banks; k++) sum_reg[k] <= sum_reg[k-1] + GradientBits'(product_reg[k]);
  end

  assign sum = sum_reg[Banks-1];

endmodule : product_column
