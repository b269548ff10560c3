// Proves of sync_fifo: one beat, any one, is followed from the input to the output.  It leaves after exactly those that
// were inside before it, unchanged; `level` counts; a beat is refused only when the memory is full.
module sync_fifo_fv #(
    parameter int unsigned WIDTH = 8,
    parameter int unsigned DEPTH = 4
) (
    input logic             clk,
    input logic             rst,
    input logic [WIDTH-1:0] s_data,
    input logic             s_valid,
    input logic             m_ready,
    // follow the beat that enters now
    input logic             pick
);

  localparam int unsigned Bits = $clog2(DEPTH);

  logic             s_ready;
  logic [WIDTH-1:0] m_data;
  logic             m_valid;
  logic [Bits:0]    level;

  sync_fifo #(.WIDTH(WIDTH), .DEPTH(DEPTH), .RAM_STYLE("distributed")) dut (.*);

  logic             started_reg = 1'b0;
  logic             following_reg;
  logic [WIDTH-1:0] value_reg;
  logic [Bits:0]    place_reg;   // where it was written
  logic [Bits:0]    before_reg;  // beats that leave before it
  logic [Bits:0]    inside_reg;  // a count of our own
  logic [Bits:0]    deepest_reg;

  wire enters = s_valid && s_ready;
  wire leaves = m_valid && m_ready;
  wire [Bits:0] ahead = place_reg - dut.read_reg;
  wire [Bits:0] stored = dut.write_reg - dut.read_reg;

  always_ff @(posedge clk) begin
    started_reg <= 1'b1;
    if (!started_reg) assume (rst);
    else if (!$past(rst) && $past(s_valid) && !$past(s_ready)) assume (rst || (s_valid && $stable(s_data)));

    if (rst) begin
      following_reg <= 1'b0;
      inside_reg    <= '0;
      deepest_reg   <= '0;
    end else begin
      inside_reg <= inside_reg + (Bits + 1)'(enters) - (Bits + 1)'(leaves);
      if (level > deepest_reg) deepest_reg <= level;
      if (enters && pick && !following_reg) begin
        following_reg <= 1'b1;
        value_reg     <= s_data;
        place_reg     <= dut.write_reg;
        before_reg    <= level - (Bits + 1)'(leaves);
      end else if (following_reg && leaves) begin
        if (before_reg == '0) following_reg <= 1'b0;
        before_reg <= before_reg - 1'b1;
      end
    end
  end

  always_ff @(posedge clk) begin
    if (started_reg && !rst) begin
      counts : assert (level == inside_reg && level <= (Bits + 1)'(DEPTH + 1));
      takes_unless_full : assert (s_ready == (stored != (Bits + 1)'(DEPTH)));
      bounded : assert (stored <= (Bits + 1)'(DEPTH));
      shows : assert (!m_valid || level != '0);
      if (following_reg) begin
        in_order : assert (!m_valid || before_reg != '0 || m_data == value_reg);
        // what makes it inductive: it lies in the memory, or at the output
        if (ahead < stored) begin
          in_memory : assert (dut.memory[place_reg[Bits-1:0]] == value_reg);
          its_turn : assert (before_reg == ahead + (Bits + 1)'(m_valid));
        end else begin
          at_output : assert (m_valid && before_reg == '0 && m_data == value_reg && ahead == '1);
        end
      end
      fills : cover (level == (Bits + 1)'(DEPTH + 1));
      empties : cover (level == '0 && deepest_reg == (Bits + 1)'(DEPTH + 1));
      last_of_many : cover (following_reg && leaves && before_reg == '0 && deepest_reg == (Bits + 1)'(DEPTH + 1));
      both_ways : cover (enters && leaves);
    end
  end

endmodule : sync_fifo_fv
