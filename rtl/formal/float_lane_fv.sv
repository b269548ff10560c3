// Proves of float_lane_to_int that it rounds as the definition says, rather than as a second shifter does.  With x =
// sig * 2^(left - .. ) in units of the lane, q is right if |q - x| is at most a half, and even if it is exactly a half.
// Half a packed lane may be one less where that would be 2^(15-h).
module float_lane_fv
  import catchment_wire_pkg::*;
  import format_pkg::*;
#(
    parameter logic [7:0] DTYPE = 8'd2,
    parameter bit PAIRS = 1'b0
) (
    input logic        clk,
    input logic [31:0] value,
    input logic [7:0]  exponent,
    input logic [2:0]  headroom,
    input logic        full
);

  format_t     as;
  logic [31:0] lane;
  logic        saturated;
  logic        nonfinite;

  assign as = '{dtype: data_type_t'(DTYPE), exponent: exponent, headroom: headroom, pairs: PAIRS, full: full};

  float_lane_to_int #(.STAGES(1)) dut (.clk, .enable(1'b1), .value, .as, .kept(1'b1), .lane, .saturated, .nonfinite);

  // ---- what went in, unpacked in our own way --------------------------------------------------------------
  logic        sign_reg;
  logic        infinite_reg;
  logic [31:0] sig_reg;
  logic signed [11:0] power_reg;  // of sig, in units of the lane
  logic [31:0] limit_reg;
  logic        less_reg;      // the end is one less than the limit
  localparam logic signed [11:0] Place = PAIRS ? 12'sd15 : 12'sd30;
  logic        started_reg = 1'b0;

  always_ff @(posedge clk) begin
    assume (headroom <= 3'd6);
    started_reg <= 1'b1;
    limit_reg   <= 32'd1 << (5'(Place) - 5'(headroom));
    less_reg    <= PAIRS && full;
    case (DTYPE)
      DATA_TYPE_FP16: begin
        sign_reg     <= value[15];
        infinite_reg <= value[14:10] == 5'd31;
        sig_reg      <= {21'd0, value[14:10] != 0, value[9:0]};
        power_reg    <= (value[14:10] == 0 ? 12'sd1 : 12'(value[14:10])) - 12'sd25 + Place
                      - 12'(headroom) - 12'($signed(exponent));
      end
      DATA_TYPE_BF16: begin
        sign_reg     <= value[15];
        infinite_reg <= value[14:7] == 8'd255;
        sig_reg      <= {24'd0, value[14:7] != 0, value[6:0]};
        power_reg    <= (value[14:7] == 0 ? 12'sd1 : 12'(value[14:7])) - 12'sd134 + Place
                      - 12'(headroom) - 12'($signed(exponent));
      end
      default: begin
        sign_reg     <= value[31];
        infinite_reg <= value[30:23] == 8'd255;
        sig_reg      <= {8'd0, value[30:23] != 0, value[22:0]};
        power_reg    <= (value[30:23] == 0 ? 12'sd1 : 12'(value[30:23])) - 12'sd150 + Place
                      - 12'(headroom) - 12'($signed(exponent));
      end
    endcase
  end

  // ---- is the lane right? -----------------------------------------------------------------------------------
  wire [31:0] magnitude = lane[31] ? -lane : lane;
  // left of the point: exact.  Right of it by k: compare in units of 2^-k; beyond 26 nothing is left.
  wire        leftward  = power_reg >= 0;
  wire [5:0]  far       = leftward ? (power_reg > 12'sd31 ? 6'd31 : power_reg[5:0])
                                   : (power_reg < -12'sd26 ? 6'd26 : 6'(-power_reg));
  wire [63:0] exact     = {32'd0, sig_reg} << far;
  wire [63:0] back      = {32'd0, magnitude} << far;
  wire [63:0] unit      = 64'd1 << far;
  wire [63:0] apart     = back > {32'd0, sig_reg} ? back - {32'd0, sig_reg} : {32'd0, sig_reg} - back;
  wire        too_large = leftward ? exact > {32'd0, limit_reg}
                                   : {32'd0, sig_reg} > ({32'd0, limit_reg} << far) + (unit >> 1);
  // What rounds to the limit itself, half to even, where that is too large by one.
  wire        reaches   = leftward ? exact >= {32'd0, limit_reg}
                                   : {32'd0, sig_reg} >= ({32'd0, limit_reg} << far) - (unit >> 1);
  wire        ends      = less_reg && reaches;
  wire [31:0] end_at    = limit_reg - 32'(less_reg);

  always_ff @(posedge clk) begin
    if (started_reg) begin
      reported : assert (nonfinite == infinite_reg);
      cut : assert (saturated == (infinite_reg || too_large));
      if (saturated || ends) begin
        to_the_end : assert (lane == (sign_reg ? -end_at : end_at));
      end else if (leftward) begin
        exactly : assert (exact == {32'd0, magnitude});
      end else begin
        nearest : assert ({apart, 1'b0} < {1'b0, unit} || ({apart, 1'b0} == {1'b0, unit} && !magnitude[0]));
      end
      signs : assert (magnitude == 0 || lane[31] == sign_reg);
      tie : cover (!saturated && !leftward && {apart, 1'b0} == {1'b0, unit} && magnitude > 32'd3);
      cuts : cover (saturated && !nonfinite && sign_reg);
      vanishes : cover (sig_reg != 0 && magnitude == 0);
      moves_left : cover (leftward && !saturated && power_reg > 12'sd2 && sig_reg != 0);
    end
  end

endmodule : float_lane_fv
