// d / 2**shift rounded to the nearest, halves to even, is q + up, three clocks later.
module rounding_shift #(
    parameter int unsigned WIDTH = 48,
    // 5 or 6
    parameter int unsigned SHIFT_BITS = 6
) (
    input  logic                    clk,
    // at rest while anything passes
    input  logic [SHIFT_BITS-1:0]   shift,
    input  logic signed [WIDTH-1:0] d,
    output logic signed [WIDTH-1:0] q,
    output logic                    up
);

  // below the value: half a unit, and whether anything is below that
  typedef struct packed {
    logic signed [WIDTH-1:0] whole;
    logic                    half;
    logic                    rest;
  } value_t;

  function automatic value_t moved(value_t value, logic [1:0] steps, int unsigned step);
    value_t result;
    logic signed [WIDTH+1:0] all;
    logic lost;
    all = {value.whole, value.half, value.rest};
    case (steps)
      2'd0: lost = 1'b0;
      2'd1: lost = |(all & ~({(WIDTH + 2){1'b1}} << step));
      2'd2: lost = |(all & ~({(WIDTH + 2){1'b1}} << (2 * step)));
      default: lost = |(all & ~({(WIDTH + 2){1'b1}} << (3 * step)));
    endcase
    case (steps)
      2'd0: result = all;
      2'd1: result = all >>> step;
      2'd2: result = all >>> (2 * step);
      default: result = all >>> (3 * step);
    endcase
    result.rest |= lost;
    return result;
  endfunction

  value_t sixteens_reg;
  value_t fours_reg;
  value_t ones_reg;

  always_ff @(posedge clk) begin
    sixteens_reg <= moved('{whole: d, half: 1'b0, rest: 1'b0}, 2'(shift >> 4), 16);
    fours_reg    <= moved(sixteens_reg, shift[3:2], 4);
    ones_reg     <= moved(fours_reg, shift[1:0], 1);
  end

  assign q  = ones_reg.whole;
  assign up = ones_reg.half && (ones_reg.rest || ones_reg.whole[0]);

endmodule : rounding_shift
