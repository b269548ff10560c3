// Proves of sip_hash, for every key and every message of any length, however its words come and its hash is taken: the hash is
// that of SipHash-2-4 as the paper writes it, over this message alone, and there as many clocks after a word as the rounds take.
// By induction: each clock the paper's next step takes the state that it should, makes of it what the paper's round does, and leaves
// it as it should; which step that is the proof counts itself.
// The paper's x <<< by.
`define ROTL(x, by) {x[63-by:0], x[63:64-by]}

module sip_hash_fv (
    input logic         clk,
    input logic         rst,
    input logic [127:0] key,
    input logic [63:0]  s_word,
    input logic         s_last,
    input logic         s_valid,
    input logic         m_ready
);

  typedef logic [3:0][63:0] paper_t;  // v0 .. v3 of the paper

  logic        s_ready;
  logic [63:0] m_hash;
  logic        m_valid;

  sip_hash dut (.*);

  function automatic paper_t sip_round(input paper_t v);
    v[0] = v[0] + v[1];
    v[1] = `ROTL(v[1], 13);
    v[1] = v[1] ^ v[0];
    v[0] = `ROTL(v[0], 32);
    v[2] = v[2] + v[3];
    v[3] = `ROTL(v[3], 16);
    v[3] = v[3] ^ v[2];
    v[0] = v[0] + v[3];
    v[3] = `ROTL(v[3], 21);
    v[3] = v[3] ^ v[0];
    v[2] = v[2] + v[1];
    v[1] = `ROTL(v[1], 17);
    v[1] = v[1] ^ v[2];
    v[2] = `ROTL(v[2], 32);
    return v;
  endfunction

  wire paper_t begun = {
      key[127:64] ^ 64'h7465646279746573, key[63:0] ^ 64'h6c7967656e657261,
      key[127:64] ^ 64'h646f72616e646f6d, key[63:0] ^ 64'h736f6d6570736575
  };
  wire paper_t held = {dut.v_reg.v3, dut.v_reg.v2, dut.v_reg.v1, dut.v_reg.v0};

  logic        open_reg;     // words of a message were taken
  logic        over_reg;     // all of them
  logic [63:0] word_reg;     // the latest
  logic [2:0]  rounds_reg;   // that the word had, and after the last word those of the end: 2 of 2, then 4 more
  logic        long_reg;     // the word is not the message's first
  logic        past_reg = 1'b0;

  wire take = s_valid && s_ready;
  wire due  = open_reg && (rounds_reg == 3'd1 || (over_reg && rounds_reg < 3'd6));

  // The state that a round takes now, and what becomes of it a clock later.
  paper_t from;
  paper_t turned_reg;
  logic   turns_reg;
  paper_t was_reg;
  logic   reset_reg;
  logic   second_reg;  // it was a word's second round
  paper_t next;

  wire paper_t taken  = {dut.from.v3, dut.from.v2, dut.from.v1, dut.from.v0};
  wire paper_t turned = {dut.turned.v3, dut.turned.v2, dut.turned.v1, dut.turned.v0};

  always_comb begin
    from = take && !open_reg ? begun : held;
    if (take) from[3] = from[3] ^ s_word;
    next = turned_reg;
    if (second_reg) next[0] = next[0] ^ word_reg;
    if (second_reg && over_reg) next[2] = next[2] ^ 64'hff;
  end

  always_ff @(posedge clk) begin
    past_reg   <= 1'b1;
    turned_reg <= turned;
    turns_reg  <= take || due;
    second_reg <= due && rounds_reg == 3'd1;
    was_reg    <= held;
    reset_reg  <= rst;
    if (take) begin
      word_reg   <= s_word;
      long_reg   <= open_reg;
      open_reg   <= 1'b1;
      over_reg   <= s_last;
      rounds_reg <= 3'd1;
    end else if (due) begin
      rounds_reg <= rounds_reg + 3'd1;
    end
    if (m_valid && m_ready) begin
      open_reg <= 1'b0;
      over_reg <= 1'b0;
    end
    if (rst) begin
      open_reg <= 1'b0;
      over_reg <= 1'b0;
    end
    if (!past_reg) assume (rst);
  end

  always_ff @(posedge clk) begin
    if (past_reg && !rst) begin
      counts : assert (!open_reg || (rounds_reg >= 3'd1 && rounds_reg <= (over_reg ? 3'd6 : 3'd2)));
      over : assert (open_reg || !over_reg);
      takes : assert (!(take || due) || taken == from);
      turns : assert (turned == sip_round(taken));
      leaves : assert (reset_reg || !turns_reg || held == next);
      stays : assert (reset_reg || turns_reg || held == was_reg);
      knows : assert (dut.first_reg == (!open_reg || over_reg));
      at_word : assert (s_ready == (!open_reg || (!over_reg && rounds_reg == 3'd2)));
      at_second : assert (!open_reg || rounds_reg != 3'd1
                          || (dut.step_reg == 3'd1 && dut.last_reg == over_reg && dut.word_reg == word_reg));
      at_end : assert (!over_reg || rounds_reg < 3'd2 || dut.step_reg == rounds_reg);
      hash : assert (!m_valid || m_hash == (held[0] ^ held[1] ^ held[2] ^ held[3]));
      in_time : assert (m_valid == (over_reg && rounds_reg == 3'd6));
      short_message : cover (m_valid && m_ready && !long_reg);
      long_message : cover (m_valid && m_ready && long_reg);
      waits : cover (m_valid && !turns_reg && long_reg);
    end
  end

endmodule : sip_hash_fv
