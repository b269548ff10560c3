// Proves of int_lane_to_float that it rounds as the definition says.  In units of the lane's lowest bit the float is
// sig * 2^up; it is right if nothing that its type can say is nearer, and even if two are as near.
module int_lane_fv
  import catchment_wire_pkg::*;
  import format_pkg::*;
#(
    parameter logic [7:0] DTYPE = 8'd2
) (
    input logic        clk,
    input logic [31:0] lane,
    input logic [7:0]  exponent,
    input logic [2:0]  headroom,
    input logic        kept
);

  localparam bit Integer = DTYPE == DATA_TYPE_INT32;
  // bits of a fraction and of an exponent field; the field that stands for 2^0 as the lowest bit of a significand
  localparam int unsigned Fraction = DTYPE == DATA_TYPE_FP16 ? 10 : DTYPE == DATA_TYPE_BF16 ? 7 : 23;
  localparam int unsigned Field = DTYPE == DATA_TYPE_FP16 ? 5 : 8;
  localparam logic signed [11:0] Origin = DTYPE == DATA_TYPE_FP16 ? 12'sd25 : DTYPE == DATA_TYPE_BF16 ? 12'sd134 : 12'sd150;
  // from (2^(Fraction + 2) - 1) * 2^Edge on, a number is an infinity
  localparam logic signed [11:0] Edge = DTYPE == DATA_TYPE_FP16 ? 12'sd4 : DTYPE == DATA_TYPE_BF16 ? 12'sd119 : 12'sd103;

  format_t     as;
  logic [31:0] value;

  assign as = '{dtype: data_type_t'(DTYPE), exponent: exponent, headroom: headroom, pairs: 1'b0, full: 1'b0};

  int_lane_to_float #(.STAGES(1)) dut (.clk, .enable(1'b1), .lane, .as, .kept, .value);

  // ---- what went in ---------------------------------------------------------------------------------------
  logic               started_reg = 1'b0;
  logic               kept_reg;
  logic [31:0]        lane_reg;
  logic [31:0]        magnitude_reg;
  logic signed [11:0] power_reg;  // of the lane's lowest bit

  always_ff @(posedge clk) begin
    assume (headroom <= 3'd5);
    started_reg   <= 1'b1;
    kept_reg      <= kept;
    lane_reg      <= lane;
    magnitude_reg <= lane[31] ? -lane : lane;
    power_reg     <= 12'($signed(exponent)) + 12'(headroom) - 12'sd30;
  end

  // ---- what came out --------------------------------------------------------------------------------------
  wire              negative = value[Fraction+Field];
  wire [Field-1:0]  field    = value[Fraction+:Field];
  wire [Fraction:0] sig      = {field != 0, value[Fraction-1:0]};
  wire              infinite = &field;

  // Beyond 40 to either side only zero fits.
  wire signed [11:0] up      = (field == 0 ? 12'sd1 : 12'(field)) - Origin - power_reg;
  wire [5:0]         left    = up < 0 ? 6'd0 : up > 12'sd40 ? 6'd40 : up[5:0];
  wire [5:0]         right   = up >= 0 ? 6'd0 : up < -12'sd40 ? 6'd40 : 6'(-up);
  // both in halves of the finer unit
  wire [74:0]        said    = {42'd0, {(32 - Fraction) {1'b0}}, sig} << (left + 6'd1);
  wire [74:0]        meant   = {43'd0, magnitude_reg} << (right + 6'd1);
  wire [74:0]        half    = 75'd1 << left;
  wire               above   = said > meant;
  wire [74:0]        apart   = above ? said - meant : meant - said;
  // below a power of two the next number is half as far, down to the smallest exponent
  wire               dense   = above && value[Fraction-1:0] == 0 && field > 1;

  wire signed [11:0] beyond  = power_reg - Edge;
  wire [5:0]         wider   = beyond < 0 ? 6'd0 : beyond > 12'sd30 ? 6'd30 : beyond[5:0];
  wire [5:0]         further = beyond >= 0 ? 6'd0 : beyond < -12'sd33 ? 6'd33 : 6'(-beyond);
  wire               too_large = ({43'd0, magnitude_reg} << wider) >= (75'((1 << (Fraction + 2)) - 1) << further);

  always_ff @(posedge clk) begin
    if (started_reg) begin
      if (!kept_reg) begin
        not_kept : assert (value == 0);
      end else if (Integer) begin
        untouched : assert (value == lane_reg);
      end else if (magnitude_reg == 0) begin
        plus_zero : assert (value == 0);
      end else begin
        signs : assert (negative == lane_reg[31]);
        nothing_above : assert (value >> (Fraction + Field + 1) == 0);
        infinities : assert (infinite == too_large);
        if (infinite) begin
          no_nan : assert (value[Fraction-1:0] == 0);
        end else begin
          nearest : assert (apart <= half);
          nearest_below_a_power : assert (!dense || {apart, 1'b0} <= {1'b0, half});
          to_even : assert (apart != half || up < 0 || !sig[0]);
        end
      end
    end
  end

  if (Integer) begin : gen_integer
    always_ff @(posedge clk) passes : cover (started_reg && kept_reg && lane_reg[31]);
  end else begin : gen_float
    always_ff @(posedge clk) begin
      if (started_reg && kept_reg && magnitude_reg != 0) begin
        tie : cover (!infinite && up > 0 && apart == half && magnitude_reg > 3);
        overflows : cover (infinite && lane_reg[31]);
        denormal : cover (field == 0 && sig != 0 && lane_reg[31]);
        exact : cover (apart == 0 && magnitude_reg > 5);
        carries : cover (above && value[Fraction-1:0] == 0 && field > 2);
      end
    end
  end

endmodule : int_lane_fv
