// One lane's products over the banks, summed as they go from multiplier to multiplier: bank k's factors come k clocks after
// bank 0's, and the sum is there three clocks after bank 7's: a column of DSP48E2.
module product_column
  import glm_numbers_pkg::*;
  import glm_pkg::*;
(
    input  logic                         clk,
    input  scales_t                      scales,
    input  logic [Banks-1:0][Planes-1:0] features,
    // added in the last clock, if `with_base`
    input  gradient_t                    base,
    input  logic                         with_base,
    output gradient_t                    sum
);

  gradient_t sums[Banks+1];

  assign sums[0] = '0;
  assign sum     = sums[Banks];

  for (genvar k = 0; k < Banks; k++) begin : gen_bank
    multiply_add #(.CHAINED(k != 0), .LAST(k == Banks - 1)) cell_k (
        .clk, .a(scales[k]), .b(features[k]), .before_sum(sums[k]), .base, .with_base,
        .sum(sums[k+1])
    );
  end

endmodule : product_column
