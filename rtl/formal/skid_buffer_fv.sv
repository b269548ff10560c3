// Proves of skid_buffer: one beat, any one, is followed; it leaves in its turn, unchanged.  Both directions are
// registers.
module skid_buffer_fv #(
    parameter int unsigned WIDTH = 512
) (
    input logic             clk,
    input logic             rst,
    input logic [WIDTH-1:0] s_data,
    input logic             s_valid,
    input logic             m_ready,
    input logic             pick
);

  logic             s_ready;
  logic [WIDTH-1:0] m_data;
  logic             m_valid;

  skid_buffer #(.WIDTH(WIDTH)) dut (.*);

  logic             started_reg = 1'b0;
  logic             following_reg;
  logic [WIDTH-1:0] value_reg;
  logic             second_reg;  // one leaves before it

  wire enters = s_valid && s_ready;
  wire leaves = m_valid && m_ready;

  always_ff @(posedge clk) begin
    started_reg <= 1'b1;
    if (!started_reg) assume (rst);
    else if (!$past(rst) && $past(s_valid) && !$past(s_ready)) assume (rst || (s_valid && $stable(s_data)));
    if (rst) following_reg <= 1'b0;
    else if (enters && pick && !following_reg) begin
      following_reg <= 1'b1;
      value_reg     <= s_data;
      second_reg    <= m_valid && !m_ready;
    end else if (following_reg && leaves) begin
      following_reg <= second_reg;
      second_reg    <= 1'b0;
    end

    if (started_reg && !rst) begin
      spare_needs_output : assert (s_ready || m_valid);
      if (following_reg) begin
        in_order : assert (second_reg ? !s_ready && dut.held_reg == value_reg : m_valid && m_data == value_reg);
      end
      full : cover (!s_ready);
      drains : cover (following_reg && second_reg && leaves);
      full_rate : cover (enters && leaves && $past(enters) && $past(leaves));
    end
  end

endmodule : skid_buffer_fv
