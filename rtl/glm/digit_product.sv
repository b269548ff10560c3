// a * b of LUTs, since DSPs are the engines' alone: b's digits are two bits, each chooses a multiple of `a` and adds it to what
// is above the digits before, one LUT a bit.
module digit_product #(
    // of an unsigned factor
    parameter int unsigned A_BITS = 16,
    parameter int unsigned DIGITS = 5,
    // b's highest digit is 0, 1, -2 or -1
    parameter bit SIGNED = 1'b0
) (
    input  logic [A_BITS-1:0]                   a,
    input  logic [A_BITS+1:0]                   three_a,
    // -a, if SIGNED
    input  logic signed [A_BITS:0]              minus_a,
    input  logic [2*DIGITS-1:0]                 b,
    output logic signed [A_BITS+2*DIGITS:0]     product
);

  typedef logic signed [A_BITS+2:0] sum_t;

  sum_t sums[DIGITS];

  for (genvar i = 0; i < DIGITS; i++) begin : gen_digit
    wire [1:0] digit = b[2*i+:2];
    sum_t      multiple;
    sum_t      above;

    always_comb begin
      case (digit)
        2'd0:    multiple = '0;
        2'd1:    multiple = sum_t'({1'b0, a});
        2'd2:    multiple = SIGNED && i == DIGITS - 1 ? sum_t'(minus_a) <<< 1 : sum_t'({1'b0, a, 1'b0});
        default: multiple = SIGNED && i == DIGITS - 1 ? sum_t'(minus_a) : sum_t'({1'b0, three_a});
      endcase
    end

    if (i == 0) begin : gen_lowest
      assign above = '0;
    end else begin : gen_higher
      assign above = sums[i-1] >>> 2;
      assign product[2*(i-1)+:2] = sums[i-1][1:0];
    end
    assign sums[i] = above + multiple;
  end

  assign product[A_BITS+2*DIGITS:2*DIGITS-2] = sums[DIGITS-1];

  if (!SIGNED) begin : gen_unused
    wire unused = &{1'b0, minus_a};
  end

endmodule : digit_product
