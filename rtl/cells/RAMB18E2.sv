// The vendor's cell as far as Yosys maps memories to it: no output registers, no cascade, no ECC, contents unknown at
// first, one clock.  What it has no parameter or pin for, a netlist cannot ask for.
module RAMB18E2 #(
    parameter int DOA_REG = 1, DOB_REG = 1,
    parameter int READ_WIDTH_A = 0, READ_WIDTH_B = 0, WRITE_WIDTH_A = 0, WRITE_WIDTH_B = 0,
    parameter WRITE_MODE_A = "NO_CHANGE", WRITE_MODE_B = "NO_CHANGE",
    parameter logic [17:0] INIT_A = '0, INIT_B = '0, SRVAL_A = '0, SRVAL_B = '0
) (
    input  logic        CLKARDCLK, CLKBWRCLK,
    input  logic        ENARDEN, ENBWREN, ADDRENA, ADDRENB, SLEEP,
    input  logic        RSTRAMARSTRAM, RSTRAMB, RSTREGARSTREG, RSTREGB, REGCEAREGCE, REGCEB,
    input  logic [13:0] ADDRARDADDR, ADDRBWRADDR,
    input  logic [1:0]  WEA,
    input  logic [3:0]  WEBWE,
    input  logic [15:0] DINADIN, DINBDIN,
    input  logic [1:0]  DINPADINP, DINPBDINP,
    output logic [15:0] DOUTADOUT, DOUTBDOUT,
    output logic [1:0]  DOUTPADOUTP, DOUTPBDOUTP
);

  localparam bit UsesA = READ_WIDTH_A != 0 || WRITE_WIDTH_A != 0, UsesB = READ_WIDTH_B != 0 || WRITE_WIDTH_B != 0;
  localparam bit WideRead = READ_WIDTH_A > 18, WideWrite = WRITE_WIDTH_B > 18;
  if (DOA_REG != 0 || DOB_REG != 0) begin : gen_registers
    $fatal(1, "RAMB18E2: output registers are not modelled");
  end

  logic [31:0] wide_a, wide_b;
  logic [3:0]  widep_a, widep_b;
  wire clk = UsesA ? CLKARDCLK : CLKBWRCLK;

  block_ram #(
      .HALF(16), .READ_A(READ_WIDTH_A), .READ_B(READ_WIDTH_B), .WRITE_A(WRITE_WIDTH_A), .WRITE_B(WRITE_WIDTH_B),
      .MODE_A(WRITE_MODE_A), .MODE_B(WRITE_MODE_B),
      .INIT_A, .INIT_B, .SRVAL_A, .SRVAL_B
  ) memory (
      .clk, .en_a(ENARDEN), .en_b(ENBWREN), .rst_a(RSTRAMARSTRAM), .rst_b(RSTRAMB),
      .we_a(4'(WEA)), .we_b(WideWrite ? WEBWE : 4'(WEBWE[1:0])), .addr_a(ADDRARDADDR), .addr_b(ADDRBWRADDR),
      .din_a(32'(DINADIN)), .din_b(WideWrite ? {DINBDIN, DINADIN} : 32'(DINBDIN)),
      .dinp_a(4'(DINPADINP)), .dinp_b(WideWrite ? {DINPBDINP, DINPADINP} : 4'(DINPBDINP)),
      .dout_a(wide_a), .dout_b(wide_b), .doutp_a(widep_a), .doutp_b(widep_b)
  );

  assign {DOUTPADOUTP, DOUTADOUT} = {widep_a[1:0], wide_a[15:0]};
  assign {DOUTPBDOUTP, DOUTBDOUT} =
      WideRead ? {widep_a[3:2], wide_a[31:16]} : {widep_b[1:0], wide_b[15:0]};

  always @(posedge clk) begin
    if (UsesA && UsesB && CLKARDCLK != CLKBWRCLK) $fatal(1, "RAMB18E2: two clocks are not modelled");
    if (SLEEP) $fatal(1, "RAMB18E2: sleep is not modelled");
  end

endmodule : RAMB18E2
