// The valid bits of a pipeline of STAGES registers that stalls as a whole, and what travels beside its data.
// `enable` is the pipeline's: high unless a finished beat waits at the end.
module stream_delay #(
    parameter int unsigned WIDTH = 1,
    // at least 1
    parameter int unsigned STAGES = 3
) (
    input  logic             clk,
    input  logic             rst,

    input  logic [WIDTH-1:0] s_data,
    input  logic             s_valid,
    output logic             enable,

    output logic [WIDTH-1:0] m_data,
    output logic             m_valid,
    input  logic             m_ready
);

  if (STAGES < 1) begin : gen_bad_stages
    $fatal(1, "stream_delay: STAGES must be at least 1");
  end

  logic [STAGES-1:0]            valid_reg;
  logic [STAGES-1:0][WIDTH-1:0] data_reg;

  assign enable  = m_ready || !m_valid;
  assign m_valid = valid_reg[STAGES-1];
  assign m_data  = data_reg[STAGES-1];

  always_ff @(posedge clk) begin
    if (enable) begin
      data_reg[0] <= s_data;
      for (int unsigned i = 1; i < STAGES; i++) data_reg[i] <= data_reg[i-1];
    end
    if (rst) begin
      valid_reg <= '0;
    end else if (enable) begin
      valid_reg[0] <= s_valid;
      for (int unsigned i = 1; i < STAGES; i++) valid_reg[i] <= valid_reg[i-1];
    end
  end

endmodule : stream_delay
