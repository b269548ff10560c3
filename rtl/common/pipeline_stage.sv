// A register in a pipeline that stalls as a whole, or a wire where the depth is a parameter.
module pipeline_stage #(
    parameter int unsigned WIDTH = 1,
    // 1: a register, 0: a wire
    parameter bit PRESENT = 1'b1
) (
    input  logic             clk,
    // the register keeps its value while this is low
    input  logic             enable,
    input  logic [WIDTH-1:0] d,
    output logic [WIDTH-1:0] q
);

  if (PRESENT) begin : gen_register
    logic [WIDTH-1:0] q_reg;
    always_ff @(posedge clk) begin
      if (enable) q_reg <= d;
    end
    assign q = q_reg;
  end else begin : gen_wire
    wire unused = &{1'b0, clk, enable};
    assign q = d;
  end

endmodule : pipeline_stage
