// One beat of slack: both directions are registered, and a beat moves every clock.
module skid_buffer #(
    // bits of a beat
    parameter int unsigned WIDTH = 512
) (
    input  logic             clk,
    input  logic             rst,

    input  logic [WIDTH-1:0] s_data,
    input  logic             s_valid,
    output logic             s_ready,

    output logic [WIDTH-1:0] m_data,
    output logic             m_valid,
    input  logic             m_ready
);

  if (WIDTH == 0) begin : gen_bad_width
    $fatal(1, "skid_buffer: WIDTH must be at least 1");
  end

  logic [WIDTH-1:0] held_reg;   // the beat that arrived while the output was stalled
  logic             full_reg;   // held_reg holds a beat
  logic [WIDTH-1:0] out_reg;
  logic             valid_reg;

  wire take = s_valid && s_ready;
  wire move = m_ready || !valid_reg;

  assign s_ready = !full_reg;
  assign m_data  = out_reg;
  assign m_valid = valid_reg;

  always_ff @(posedge clk) begin
    if (move) begin
      out_reg <= full_reg ? held_reg : s_data;
    end
    if (take) begin
      held_reg <= s_data;
    end
    if (rst) begin
      full_reg  <= 1'b0;
      valid_reg <= 1'b0;
    end else begin
      if (move) begin
        valid_reg <= full_reg || take;
        full_reg  <= 1'b0;
      end else if (take) begin
        full_reg <= 1'b1;
      end
    end
  end

  stream_check #(.WIDTH(WIDTH)) check_s (.clk, .rst, .data(s_data), .valid(s_valid), .ready(s_ready));
  stream_check #(.WIDTH(WIDTH)) check_m (.clk, .rst, .data(m_data), .valid(m_valid), .ready(m_ready));

endmodule : skid_buffer
