// Delays a value by STAGES registers in a row, without a reset.
module delay_line #(
    parameter int unsigned WIDTH = 1,
    // number of registers; 0: a wire
    parameter int unsigned STAGES = 1
) (
    input  logic             clk,
    input  logic [WIDTH-1:0] d,
    output logic [WIDTH-1:0] q
);

  if (STAGES == 0) begin : gen_wire
    wire unused = &{1'b0, clk};
    assign q = d;
  end else begin : gen_registers
    logic [STAGES-1:0][WIDTH-1:0] stage_reg;
    always_ff @(posedge clk) begin
      stage_reg[0] <= d;
      for (int unsigned i = 1; i < STAGES; i++) stage_reg[i] <= stage_reg[i-1];
    end
    assign q = stage_reg[STAGES-1];
  end

endmodule : delay_line
