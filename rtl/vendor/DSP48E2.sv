// The DSP slice of UltraScale+, as far as multiply_add names it: a box for synthesis, whose inside the vendor's library has.
(* blackbox *)
module DSP48E2 #(
    parameter int AREG = 1, ACASCREG = 1, BREG = 1, BCASCREG = 1, MREG = 1, PREG = 1, CREG = 1, DREG = 1, ADREG = 1,
    parameter int INMODEREG = 1, OPMODEREG = 1, ALUMODEREG = 1, CARRYINREG = 1, CARRYINSELREG = 1,
    parameter string AMULTSEL = "A", BMULTSEL = "B", A_INPUT = "DIRECT", B_INPUT = "DIRECT",
    parameter string USE_MULT = "MULTIPLY", USE_SIMD = "ONE48"
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
endmodule : DSP48E2
