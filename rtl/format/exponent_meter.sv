// Finds the smallest exponent E, -128..127, with |x| < 2^E for all finite values x of a vector, and of the message so far:
// -128 when all are zero; denormals count as their type's smallest normal number does (docs/explanation/number-formats.md).
// A beat a clock; the answer comes six clocks after a vector's last beat.
module exponent_meter
  import catchment_wire_pkg::*;
#(
    // bytes of a vector, a multiple of 64
    parameter int unsigned VECTOR_BYTES = 256
) (
    input  logic              clk,
    input  logic              rst,

    // a beat of memory, zero where it holds no element
    input  logic [511:0]      data,
    input  data_type_t        dtype,
    // lanes are packed: a vector has twice as many elements
    input  logic              pairs,
    // the message's last beat
    input  logic              last,
    // goes with the beat to the answer
    input  logic              tag,
    input  logic              valid,

    // high for a clock: an answer
    output logic              m_valid,
    // of the vector
    output logic signed [7:0] m_exponent,
    // of the message's vectors up to this one
    output logic signed [7:0] m_most,
    // the vector is the message's last
    output logic              m_last,
    output logic              m_tag
);

  localparam int unsigned Beats = VECTOR_BYTES / 64;
  localparam int unsigned CountBits = $clog2(2 * Beats);

  // A value's magnitude, as far as it matters: {not zero, exponent field}; 0 for zero, infinities and NaN.
  typedef logic [8:0] key_t;

  function automatic key_t key_of(logic [7:0] field, logic [7:0] ones, logic fraction);
    if (field == ones) return '0;
    return {field != 8'd0 || fraction, field};
  endfunction

  function automatic key_t larger(key_t a, key_t b);
    return a > b ? a : b;
  endfunction

  // ---- one key for each 32 bits ----------------------------------------------------------------------------
  wire narrow = dtype == DATA_TYPE_FP16 || dtype == DATA_TYPE_BF16;
  wire fp16 = dtype == DATA_TYPE_FP16;
  wire floats = narrow || dtype == DATA_TYPE_FP32;

  key_t key     [16];
  key_t key_reg [16];

  for (genvar i = 0; i < 16; i++) begin : gen_key
    wire [31:0] x = data[32*i+:32];
    wire        unused_sign = x[31];
    key_t       high;  // of the upper half's number, or of all 32 bits
    key_t       low;

    assign high = fp16 ? key_of({3'd0, x[30:26]}, 8'h1f, |x[25:16])
                       : key_of(x[30:23], 8'hff, |x[22:16] || (!narrow && |x[15:0]));
    assign low  = !narrow ? '0
                : fp16 ? key_of({3'd0, x[14:10]}, 8'h1f, |x[9:0])
                : key_of(x[14:7], 8'hff, |x[6:0]);
    assign key[i] = floats ? larger(high, low) : '0;
  end

  // ---- where vectors end -----------------------------------------------------------------------------------
  // A beat of 16-bit elements is two beats of lanes, or one of packed lanes; one of 32-bit elements is half a packed one.
  typedef struct packed {
    logic valid;
    logic fp16;
    logic ends;
    logic last;
    logic tag;
  } beat_t;

  logic [CountBits-1:0] count_reg;
  logic [CountBits-1:0] places;
  beat_t                way_reg [5];  // of each stage's beat

  assign places = narrow == pairs ? CountBits'(Beats - 1)
                : pairs ? CountBits'(2 * Beats - 1) : CountBits'((Beats + 1) / 2 - 1);

  wire ends = last || count_reg == places;

  // ---- the largest of 4, of 16, of the vector, its exponent, the largest of the message ------------------------
  key_t              quarter_reg [4];
  key_t              beat_reg;
  key_t              vector_reg;    // of the beats before in the vector
  key_t              whole_reg;
  logic signed [7:0] exponent_reg;
  logic signed [7:0] most_reg;      // of the vectors before in the message
  key_t              vector;
  logic signed [7:0] most;

  function automatic logic signed [7:0] exponent_of(key_t from, logic half);
    logic signed [9:0] sum;
    if (!from[8]) return -8'sd128;
    sum = $signed({2'd0, from[7:0]}) - (half ? 10'sd14 : 10'sd126);
    return sum > 10'sd127 ? 8'sd127 : 8'(sum);
  endfunction

  assign vector = larger(vector_reg, beat_reg);
  assign most   = exponent_reg > most_reg ? exponent_reg : most_reg;

  always_ff @(posedge clk) begin
    key_reg <= key;
    for (int unsigned i = 0; i < 4; i++) begin
      quarter_reg[i] <= larger(larger(key_reg[4*i], key_reg[4*i+1]), larger(key_reg[4*i+2], key_reg[4*i+3]));
    end
    beat_reg     <= larger(larger(quarter_reg[0], quarter_reg[1]), larger(quarter_reg[2], quarter_reg[3]));
    whole_reg    <= vector;
    exponent_reg <= exponent_of(whole_reg, way_reg[3].fp16);
    way_reg[0]   <= '{valid: valid, fp16: fp16, ends: ends, last: last, tag: tag};
    for (int unsigned i = 1; i < 5; i++) way_reg[i] <= way_reg[i-1];
    m_valid      <= way_reg[4].valid && way_reg[4].ends;
    m_exponent   <= exponent_reg;
    m_most       <= most;
    m_last       <= way_reg[4].last;
    m_tag        <= way_reg[4].tag;
    if (valid) count_reg <= ends ? '0 : count_reg + 1'b1;
    if (way_reg[2].valid) vector_reg <= way_reg[2].ends ? '0 : vector;
    if (way_reg[4].valid && way_reg[4].ends) most_reg <= way_reg[4].last ? -8'sd128 : most;
    if (rst) begin
      count_reg  <= '0;
      for (int unsigned i = 0; i < 5; i++) way_reg[i].valid <= 1'b0;
      m_valid    <= 1'b0;
      vector_reg <= '0;
      most_reg   <= -8'sd128;
    end
  end

endmodule : exponent_meter
