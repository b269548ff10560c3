// a * b + before_sum + base, three clocks after a and b, one after the others: a DSP48E2 with its registers, `before_sum` from
// the multiplier below by the column's own wires.  Only the last of a column has a base.  Open mappers do not move registers and additions into a DSP48E2, so it is
// named for them; everything else sees what it does.
module multiply_add
  import glm_numbers_pkg::*;
  import glm_pkg::*;
#(
    // 0: begins a column
    parameter bit CHAINED = 1'b1,
    // ends one
    parameter bit LAST = 1'b0
) (
    input  logic              clk,
    input  scale_t            a,
    input  logic [Planes-1:0] b,
    input  gradient_t         before_sum,
    input  gradient_t         base,
    input  logic              with_base,
    output gradient_t         sum
);

`ifdef SYNTHESIS
  gradient_t chained;
  gradient_t result;

  DSP48E2 #(
      .AREG(1), .ACASCREG(1), .BREG(1), .BCASCREG(1), .MREG(1), .PREG(1),
      .CREG(0), .DREG(0), .ADREG(0), .INMODEREG(0), .OPMODEREG(0), .ALUMODEREG(0), .CARRYINREG(0), .CARRYINSELREG(0),
      .AMULTSEL("A"), .BMULTSEL("B"), .A_INPUT("DIRECT"), .B_INPUT("DIRECT"), .USE_MULT("MULTIPLY"), .USE_SIMD("ONE48")
  ) dsp (
      .CLK(clk), .A(30'(a)), .B({2'b0, b}), .C(base), .D('0),
      // W: 0 or C, Z: 0 or PCIN, Y and X: the product
      .OPMODE({LAST && with_base ? 2'b11 : 2'b00, CHAINED ? 3'b001 : 3'b000, 2'b01, 2'b01}), .ALUMODE(4'b0000), .INMODE(5'b00000),
      .CARRYIN(1'b0), .CARRYINSEL(3'b000), .PCIN(before_sum), .PCOUT(chained), .P(result),
      .ACIN('0), .BCIN('0), .CARRYCASCIN(1'b0), .MULTSIGNIN(1'b0),
      .CEA1(1'b0), .CEA2(1'b1), .CEB1(1'b0), .CEB2(1'b1), .CEM(1'b1), .CEP(1'b1),
      .CEC(1'b0), .CED(1'b0), .CEAD(1'b0), .CEALUMODE(1'b0), .CECARRYIN(1'b0), .CECTRL(1'b0), .CEINMODE(1'b0),
      .RSTA(1'b0), .RSTB(1'b0), .RSTM(1'b0), .RSTP(1'b0), .RSTC(1'b0), .RSTD(1'b0), .RSTCTRL(1'b0),
      .RSTALLCARRYIN(1'b0), .RSTALUMODE(1'b0), .RSTINMODE(1'b0)
  );
  // Within a column the sum goes up by PCOUT, at its end it leaves by P.
  assign sum = LAST ? result : chained;
`else
  scale_t                           a_reg;
  logic              [Planes-1:0]   b_reg;
  logic signed [ScaleBits+Planes:0] product_reg;
  gradient_t                        sum_reg;

  always_ff @(posedge clk) begin
    a_reg       <= a;
    b_reg       <= b;
    product_reg <= a_reg * $signed({1'b0, b_reg});
    sum_reg     <= GradientBits'(product_reg) + (CHAINED ? before_sum : '0) + (LAST && with_base ? base : '0);
  end
  assign sum = sum_reg;

  wire unused = &{1'b0, before_sum, base, with_base};
`endif

endmodule : multiply_add
