// The vendor's cell as far as multiply_add names it: P is the sum of A * B three clocks ago, of PCIN and of C, each of them or 0.
module DSP48E2 #(
    parameter int AREG = 1, ACASCREG = 1, BREG = 1, BCASCREG = 1, MREG = 1, PREG = 1, CREG = 1, DREG = 1, ADREG = 1,
    parameter int INMODEREG = 1, OPMODEREG = 1, ALUMODEREG = 1, CARRYINREG = 1, CARRYINSELREG = 1,
    parameter AMULTSEL = "A", BMULTSEL = "B", A_INPUT = "DIRECT", B_INPUT = "DIRECT",
    parameter USE_MULT = "MULTIPLY", USE_SIMD = "ONE48"
) (
    input  logic        CLK,
    input  logic [29:0] A, ACIN,
    input  logic [17:0] B, BCIN,
    input  logic [47:0] C, PCIN,
    input  logic [26:0] D,
    input  logic [8:0]  OPMODE,
    input  logic [3:0]  ALUMODE,
    input  logic [4:0]  INMODE,
    input  logic [2:0]  CARRYINSEL,
    input  logic        CARRYIN, CARRYCASCIN, MULTSIGNIN,
    input  logic        CEA1, CEA2, CEB1, CEB2, CEM, CEP, CEC, CED, CEAD, CEALUMODE, CECARRYIN, CECTRL, CEINMODE,
    input  logic        RSTA, RSTB, RSTM, RSTP, RSTC, RSTD, RSTCTRL, RSTALLCARRYIN, RSTALUMODE, RSTINMODE,
    output logic [47:0] P, PCOUT
);

  if (AREG != 1 || BREG != 1 || MREG != 1 || PREG != 1 || CREG != 0 || INMODEREG != 0 || OPMODEREG != 0 || ALUMODEREG != 0 ||
      CARRYINREG != 0 || CARRYINSELREG != 0) begin : gen_registers
    $fatal(1, "DSP48E2: other registers than those of A, B, the product and P are not modelled");
  end
  if (AMULTSEL != "A" || BMULTSEL != "B" || A_INPUT != "DIRECT" || B_INPUT != "DIRECT" || USE_MULT != "MULTIPLY" ||
      USE_SIMD != "ONE48") begin : gen_modes
    $fatal(1, "DSP48E2: nothing but a product of A and B is modelled");
  end

  logic signed [26:0] a_reg;
  logic signed [17:0] b_reg;
  logic signed [44:0] product_reg;

  assign PCOUT = P;

  always_ff @(posedge CLK) begin
    // W is 0 or C, Z is 0 or PCIN, Y and X are 0 or the product
    if (OPMODE[8] != OPMODE[7] || OPMODE[6:5] != '0 || !(OPMODE[3:0] inside {4'b0000, 4'b0101}) || ALUMODE != '0 || INMODE != '0 ||
        CARRYINSEL != '0 || CARRYIN) begin
      $fatal(1, "DSP48E2: other sums than that of a product, C and PCIN are not modelled");
    end
    if (RSTA) a_reg <= '0;
    else if (CEA2) a_reg <= A[26:0];
    if (RSTB) b_reg <= '0;
    else if (CEB2) b_reg <= B;
    if (RSTM) product_reg <= '0;
    else if (CEM) product_reg <= a_reg * b_reg;
    if (RSTP) P <= '0;
    else if (CEP) P <= (OPMODE[0] ? 48'(product_reg) : '0) + (OPMODE[4] ? PCIN : '0) + (OPMODE[8] ? C : '0);
  end

endmodule : DSP48E2
