// SipHash-2-4 (Aumasson, Bernstein, 2012) of a message of 64-bit words, of which the last has the length in its top byte: a word in
// two clocks, the hash four clocks after the last word.  One round of additions, rotations and exclusive ors is there once.
module sip_hash (
    input  logic         clk,
    input  logic         rst,

    // taken with a message's first word; the first byte of the key is the lowest
    input  logic [127:0] key,

    input  logic [63:0]  s_word,
    input  logic         s_last,
    input  logic         s_valid,
    output logic         s_ready,

    output logic [63:0]  m_hash,
    output logic         m_valid,
    input  logic         m_ready
);

  typedef struct packed {
    logic [63:0] v0;
    logic [63:0] v1;
    logic [63:0] v2;
    logic [63:0] v3;
  } state_t;

  localparam state_t Start = '{
      v0: 64'h736f_6d65_7073_6575, v1: 64'h646f_7261_6e64_6f6d, v2: 64'h6c79_6765_6e65_7261, v3: 64'h7465_6462_7974_6573
  };

  // What the next clock does: the first round of a word, its second one, one of the last four, or nothing until the hash is taken.
  typedef enum logic [2:0] {
    STEP_WORD,
    STEP_SECOND,
    STEP_FINAL_0,
    STEP_FINAL_1,
    STEP_FINAL_2,
    STEP_FINAL_3,
    STEP_DONE
  } step_t;

  function automatic state_t rounded(input state_t v);
    state_t half;
    half.v0 = v.v0 + v.v1;
    half.v1 = {v.v1[50:0], v.v1[63:51]} ^ half.v0;
    half.v2 = v.v2 + v.v3;
    half.v3 = {v.v3[47:0], v.v3[63:48]} ^ half.v2;
    rounded.v0 = {half.v0[31:0], half.v0[63:32]} + half.v3;
    rounded.v3 = {half.v3[42:0], half.v3[63:43]} ^ rounded.v0;
    rounded.v2 = half.v2 + half.v1;
    rounded.v1 = {half.v1[46:0], half.v1[63:47]} ^ rounded.v2;
    rounded.v2 = {rounded.v2[31:0], rounded.v2[63:32]};
  endfunction

  step_t       step_reg;
  logic        first_reg;  // the next word begins a message
  logic        last_reg;   // the word that is worked on ends it
  logic [63:0] word_reg;
  state_t      v_reg;

  wire    take = s_valid && s_ready;
  state_t from;
  state_t turned;
  state_t next;

  always_comb begin
    from = v_reg;
    if (step_reg == STEP_WORD) begin
      if (first_reg) from = Start ^ {key[63:0], key[127:64], key[63:0], key[127:64]};
      from.v3 ^= s_word;
    end
    turned = rounded(from);
    next   = turned;
    if (step_reg == STEP_SECOND) begin
      next.v0 ^= word_reg;
      if (last_reg) next.v2 ^= 64'hff;
    end
  end

  assign s_ready = step_reg == STEP_WORD;
  assign m_valid = step_reg == STEP_DONE;
  assign m_hash  = v_reg.v0 ^ v_reg.v1 ^ v_reg.v2 ^ v_reg.v3;

  always_ff @(posedge clk) begin
    if (step_reg != STEP_DONE && (step_reg != STEP_WORD || s_valid)) v_reg <= next;
    if (take) begin
      word_reg  <= s_word;
      last_reg  <= s_last;
      first_reg <= s_last;
    end
    unique case (step_reg)
      STEP_WORD: if (s_valid) step_reg <= STEP_SECOND;
      STEP_SECOND: step_reg <= last_reg ? STEP_FINAL_0 : STEP_WORD;
      STEP_DONE: if (m_ready) step_reg <= STEP_WORD;
      default: step_reg <= step_t'(step_reg + 3'd1);
    endcase
    if (rst) begin
      step_reg  <= STEP_WORD;
      first_reg <= 1'b1;
    end
  end

  stream_check #(.WIDTH(65)) check_s (.clk, .rst, .data({s_last, s_word}), .valid(s_valid), .ready(s_ready));
  stream_check #(.WIDTH(64)) check_m (.clk, .rst, .data(m_hash), .valid(m_valid), .ready(m_ready));

endmodule : sip_hash
