// Delays a valid bit beside a pipeline by STAGES clocks; after a reset all stages are empty.
module delay_line_valid #(
    // number of clocks, at least 2
    parameter int unsigned STAGES = 2
) (
    input  logic clk,
    input  logic rst,
    input  logic d,
    output logic q
);

  logic [STAGES-1:0] stage_reg;

  assign q = stage_reg[STAGES-1];

  always_ff @(posedge clk) begin
    if (rst) stage_reg <= '0;
    else stage_reg <= {stage_reg[STAGES-2:0], d};
  end

endmodule : delay_line_valid
