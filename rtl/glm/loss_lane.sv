// One sample's scale from its full activation: the loss's derivative, cut, times the step's multiplier, rounded
// (sim/golden/glm.py, `derivatives` and `scales_of`).
//
//   clock 0  magnitude, difference, margin     clock 3  chosen by the loss, cut
//   clock 1  segment of the sigmoid            clock 4  times the multiplier
//   clock 2  line within it                    clock 5  rounded: `scale` from clock 6
//
// The products are LUTs, not DSPs: those are as many as P4SGD's with the engines' alone.
module loss_lane
  import glm_numbers_pkg::*;
  import glm_pkg::*;
(
    input  logic                      clk,
    input  loss_t                     loss,
    // stays as it is from a clock before the first activation on
    input  logic [MultiplierBits-1:0] multiplier,
    input  lane_t                     activation,
    input  lane_t                     label,
    output scale_t                    scale
);

  localparam int unsigned ProductBits = SigmoidRiseBits + SigmoidFraction;
  localparam int unsigned HalfBits    = ScaleBits / 2;  // of a derivative: each half is multiplied for itself
  localparam int unsigned ScaledBits  = ScaleBits + MultiplierBits;
  localparam int unsigned LogisticBits = SigmoidValueBits + 1;

  // ---- clock 0 ---------------------------------------------------------------------------------------------------
  logic               negative_0_reg;
  logic               positive_0_reg;   // the label
  logic               inside_0_reg;     // hinge: the margin is below 1
  logic [31:0]        magnitude_0_reg;
  logic signed [32:0] difference_0_reg;

  wire positive = label > 0;

  always_ff @(posedge clk) begin
    negative_0_reg   <= activation < 0;
    positive_0_reg   <= positive;
    inside_0_reg     <= positive ? activation < SigmoidOne : activation > -SigmoidOne;
    magnitude_0_reg  <= activation < 0 ? -activation : activation;
    difference_0_reg <= 33'(activation) - 33'(label);
  end

  // ---- clock 1 ---------------------------------------------------------------------------------------------------
  segment_t                   segment_1_reg;
  logic [SigmoidFraction-1:0] place_1_reg;
  logic                       beyond_1_reg;
  logic                       negative_1_reg;
  logic                       positive_1_reg;
  logic                       inside_1_reg;
  logic signed [32:0]         difference_1_reg;

  always_ff @(posedge clk) begin
    segment_1_reg    <= sigmoid_segment(magnitude_0_reg[SigmoidFraction+:8]);
    place_1_reg      <= magnitude_0_reg[SigmoidFraction-1:0];
    beyond_1_reg     <= |magnitude_0_reg[31:SigmoidFraction+8];
    negative_1_reg   <= negative_0_reg;
    positive_1_reg   <= positive_0_reg;
    inside_1_reg     <= inside_0_reg;
    difference_1_reg <= difference_0_reg;
  end

  // ---- clock 2 ---------------------------------------------------------------------------------------------------
  logic [ProductBits-1:0]      rise_2_reg;
  logic [SigmoidValueBits-1:0] value_2_reg;
  logic                        beyond_2_reg;
  logic                        negative_2_reg;
  logic                        positive_2_reg;
  logic                        inside_2_reg;
  logic signed [32:0]          difference_2_reg;

  logic [ProductBits:0] rise;

  digit_product #(.A_BITS(SigmoidRiseBits), .DIGITS(SigmoidFraction / 2)) line (
      .a(segment_1_reg.rise), .three_a((SigmoidRiseBits + 2)'(segment_1_reg.rise) + {1'b0, segment_1_reg.rise, 1'b0}), .minus_a('0),
      .b(place_1_reg), .product(rise)
  );

  always_ff @(posedge clk) begin
    rise_2_reg       <= rise[ProductBits-1:0];
    value_2_reg      <= segment_1_reg.value;
    beyond_2_reg     <= beyond_1_reg;
    negative_2_reg   <= negative_1_reg;
    positive_2_reg   <= positive_1_reg;
    inside_2_reg     <= inside_1_reg;
    difference_2_reg <= difference_1_reg;
  end

  // ---- clock 3 ---------------------------------------------------------------------------------------------------

  wire [ProductBits-1:0]         rounded  = rise_2_reg + ProductBits'(1 << (SigmoidFraction - 1));
  wire [SigmoidValueBits-1:0]    inner    = value_2_reg + SigmoidValueBits'(rounded[ProductBits-1:SigmoidFraction]);
  wire [SigmoidValueBits-1:0]    sigmoid  = beyond_2_reg ? SigmoidValueBits'(SigmoidOne) : inner;
  wire signed [LogisticBits-1:0] upper    = $signed({1'b0, sigmoid});
  // ONE - sigmoid for negative activations, and less ONE for positive labels
  wire signed [LogisticBits-1:0] logistic = (negative_2_reg ? -upper : upper)
      + (negative_2_reg == positive_2_reg ? '0 : negative_2_reg ? LogisticBits'(SigmoidOne) : -LogisticBits'(SigmoidOne));
  wire signed [LogisticBits-1:0] hinge    = !inside_2_reg ? '0
      : positive_2_reg ? -LogisticBits'(SigmoidOne) : LogisticBits'(SigmoidOne);

  scale_t derivative_3_reg;

  always_ff @(posedge clk) begin
    case (loss)
      LOSS_LOGISTIC: derivative_3_reg <= ScaleBits'(logistic);
      LOSS_HINGE:    derivative_3_reg <= ScaleBits'(hinge);
      default: begin
        if (difference_2_reg > 33'(DerivativeLimit)) derivative_3_reg <= ScaleBits'(DerivativeLimit);
        else if (difference_2_reg < -33'(DerivativeLimit)) derivative_3_reg <= -ScaleBits'(DerivativeLimit);
        else derivative_3_reg <= difference_2_reg[ScaleBits-1:0];
      end
    endcase
  end

  // ---- clock 4, 5 --------------------------------------------------------------------------------------------------
  logic [MultiplierBits+1:0]                  three_reg;  // times the multiplier
  logic signed [MultiplierBits:0]             minus_reg;
  logic signed [MultiplierBits+HalfBits:0]    low;
  logic signed [MultiplierBits+HalfBits:0]    high;
  logic signed [MultiplierBits+HalfBits:0]    low_4_reg;
  logic signed [MultiplierBits+HalfBits:0]    high_4_reg;
  scale_t                                     scale_5_reg;

  digit_product #(.A_BITS(MultiplierBits), .DIGITS(HalfBits / 2)) low_half (
      .a(multiplier), .three_a(three_reg), .minus_a('0), .b(derivative_3_reg[HalfBits-1:0]), .product(low)
  );
  digit_product #(.A_BITS(MultiplierBits), .DIGITS(HalfBits / 2), .SIGNED(1'b1)) high_half (
      .a(multiplier), .three_a(three_reg), .minus_a(minus_reg), .b(derivative_3_reg[ScaleBits-1:HalfBits]), .product(high)
  );

  wire signed [ScaledBits:0] scaled = (ScaledBits + 1)'(low_4_reg) + ((ScaledBits + 1)'(high_4_reg) <<< HalfBits);
  wire half = scaled[MultiplierBits-1];
  wire up   = half && (|scaled[MultiplierBits-2:0] || scaled[MultiplierBits]);

  always_ff @(posedge clk) begin
    three_reg   <= (MultiplierBits + 2)'(multiplier) + {1'b0, multiplier, 1'b0};
    minus_reg   <= -(MultiplierBits + 1)'(multiplier);
    low_4_reg   <= low;
    high_4_reg  <= high;
    scale_5_reg <= scaled[MultiplierBits+:ScaleBits] + ScaleBits'(up);
  end

  assign scale = scale_5_reg;

  wire unused = &{1'b0, rounded[SigmoidFraction-1:0], rise[ProductBits], scaled[ScaledBits]};

endmodule : loss_lane
