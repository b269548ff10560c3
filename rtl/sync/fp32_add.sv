// a + b in IEEE 754 binary32: to the nearest, halves to the even, subnormals kept; every NaN is 0x7fc00000.  In four clocks,
// a new sum in each in which `enable` is high.
module fp32_add (
    input  logic        clk,
    // the registers keep their values while this is low
    input  logic        enable,
    input  logic [31:0] a,
    input  logic [31:0] b,
    output logic [31:0] y
);

  localparam logic [31:0] Nan = 32'h7fc0_0000;

  // ---- 1: the larger magnitude, and how far the other one lies below it ---------------------------------------
  typedef struct packed {
    logic        special;    // the sum is `value`
    logic [31:0] value;
    logic        sign;
    logic        subtract;
    logic [7:0]  exponent;   // at least 1
    logic [23:0] upper;
    logic [23:0] lower;
    logic [4:0]  distance;   // 31: that or more
  } aligned_t;

  wire        a_large = a[30:0] >= b[30:0];
  wire [31:0] x = a_large ? a : b;
  wire [31:0] z = a_large ? b : a;
  wire [7:0]  a_exponent = a[30:23] == 8'd0 ? 8'd1 : a[30:23];
  wire [7:0]  b_exponent = b[30:23] == 8'd0 ? 8'd1 : b[30:23];
  // Of a and b, not of x and z: the bits that differ are the same in both pairs, and synthesis that shares them would make
  // the comparison depend on its own result.
  wire [7:0]  distance = a_large ? a_exponent - b_exponent : b_exponent - a_exponent;
  // x has the larger exponent, so one that is not finite is there if any is.
  wire        not_finite = &x[30:23];
  wire        is_nan = not_finite && (x[22:0] != 23'd0 || (&z[30:23] && (z[22:0] != 23'd0 || x[31] != z[31])));
  aligned_t   first_reg;

  always_ff @(posedge clk) begin
    if (enable) begin
      first_reg <= '{
          special: not_finite, value: is_nan ? Nan : x, sign: x[31], subtract: x[31] != z[31], exponent: a_large ? a_exponent : b_exponent,
          upper: {x[30:23] != 8'd0, x[22:0]}, lower: {z[30:23] != 8'd0, z[22:0]},
          distance: distance > 8'd31 ? 5'd31 : distance[4:0]
      };
    end
  end

  // ---- 2: the sum, with two bits below the last one and whether anything lies further below --------------------
  typedef struct packed {
    logic        special;
    logic [31:0] value;
    logic        sign;
    logic [7:0]  exponent;
    logic [27:0] sum;
    logic [26:0] floor;  // the place that a bit has when the sum has moved up to the smallest exponent, if it is in the sum
  } summed_t;

  wire [54:0] moved = {first_reg.lower, 31'd0} >> first_reg.distance;
  wire [26:0] lower = {moved[54:29], |moved[28:0]};
  wire [27:0] upper = {1'b0, first_reg.upper, 3'd0};
  wire [27:0] sum = first_reg.subtract ? upper - {1'b0, lower} : upper + {1'b0, lower};
  summed_t    second_reg;
  logic [26:0] floor;

  always_comb for (int unsigned i = 0; i < 27; i++) floor[i] = first_reg.exponent == 8'(27 - i);

  always_ff @(posedge clk) begin
    if (enable) begin
      second_reg <= '{
          special: first_reg.special, value: first_reg.value,
          // a difference of nothing is +0
          sign: first_reg.sign && !(first_reg.subtract && upper[26:0] == lower), exponent: first_reg.exponent, sum: sum,
          floor: floor
      };
    end
  end

  // ---- 3: the first one to its place, no further than the smallest exponent -------------------------------------
  typedef struct packed {
    logic        special;
    logic [31:0] value;
    logic        sign;
    logic [7:0]  exponent;
    logic [26:0] sum;
  } placed_t;

  wire         carry = second_reg.sum[27];
  // Zeros above the first one, or above the floor.
  logic [4:0]  left;
  always_comb begin
    left = 5'd27;
    for (int unsigned i = 0; i < 27; i++) if (second_reg.sum[i] || second_reg.floor[i]) left = 5'(26 - i);
  end
  placed_t     third_reg;

  always_ff @(posedge clk) begin
    if (enable) begin
      third_reg <= '{
          special: second_reg.special, value: second_reg.value, sign: second_reg.sign,
          exponent: carry ? second_reg.exponent + 8'd1 : second_reg.exponent - 8'(left),
          sum: carry ? {second_reg.sum[27:2], |second_reg.sum[1:0]} : second_reg.sum[26:0] << left
      };
    end
  end

  // ---- 4: rounded; a carry out of the fraction goes into the exponent as it lies ---------------------------------
  wire        up = third_reg.sum[2] && (third_reg.sum[3] || third_reg.sum[1:0] != 2'd0);
  wire [7:0]  biased = third_reg.sum[26] ? third_reg.exponent : 8'd0;
  wire [30:0] rounded = {biased, third_reg.sum[25:3]} + 31'(up);

  always_ff @(posedge clk) begin
    if (enable) begin
      y <= third_reg.special ? third_reg.value : {third_reg.sign, &rounded[30:23] ? 31'h7f80_0000 : rounded};
    end
  end

endmodule : fp32_add
