// Forward propagation of an engine: takes words as they come, fetches each chunk's weights with its first plane, and
// gives the banks' sums once a micro-batch.  A chunk takes as many clocks as it has planes.
// The first micro-batch of a mini-batch takes a credit for each chunk: the update writes it (Algorithm 1, lines 14-21).
//
//   clock 0      a plane is issued, its word goes to the replay FIFO
//   clock t      a chunk's first plane: its row t is asked for
//   clock 3 + t  the bank's step t: row t is here, with the sums of its pairs
//   clock 12     the sums are complete: into their queue, out of it at clock 14
module forward
  import glm_numbers_pkg::*;
  import glm_pkg::*;
#(
    // micro-batches whose sums wait to be taken, a power of two
    parameter int unsigned SUMS = 8
) (
    input  logic                      clk,
    input  logic                      rst,
    input  training_t                 training,
    input  logic                      start,
    output logic                      busy,

    input  logic [WordBits-1:0]       s_word,
    input  logic                      s_word_valid,
    output logic                      s_word_ready,

    // for the backward propagation
    output logic                      replay_valid,
    input  logic                      replay_ready,

    // a chunk's row t is asked for t clocks after its first plane was issued, and arrives two clocks later
    output logic [Rows-1:0][ChunkIndexBits-1:0] row_chunk,
    input  logic [Rows-1:0][RowBits-1:0]        rows,
    // the update has written a chunk's first row, and writes one more with each clock
    input  logic                      credit,

    output sums_t                     m_sums,
    output logic                      m_sums_valid,
    input  logic                      m_sums_ready
);

  localparam int unsigned ToStep  = 3;                  // clocks from issue to step 0
  localparam int unsigned ToPlane = ToStep + Rows + 3;  // and to the accumulators

  // ---- order of work ------------------------------------------------------------------------------------------
  logic                      running;
  logic [ChunkIndexBits-1:0] chunk;
  logic                      chunk_last;
  logic                      batch_first;
  logic                      chunk_done;

  logic [4:0]                plane_reg;    // planes issued of this chunk
  logic [ChunkIndexBits:0]   credit_reg;
  logic [$clog2(SUMS):0]     room_reg;

  wire first     = plane_reg == 5'd0;
  wire may_begin = (!batch_first || credit_reg != '0) && (chunk != '0 || room_reg != '0);
  wire wants     = running && (!first || may_begin);
  wire issue     = wants && s_word_valid && replay_ready;
  wire last_plane = plane_reg + 5'd1 == training.bits;

  assign chunk_done   = issue && last_plane;
  assign s_word_ready = wants && replay_ready;
  assign replay_valid = wants && s_word_valid;
  assign busy         = running;

  for (genvar t = 0; t < Rows; t++) begin : gen_ask
    delay_line #(.WIDTH(ChunkIndexBits), .STAGES(t)) to_row (.clk, .d(chunk), .q(row_chunk[t]));
  end

  progress order (
      .clk, .rst, .training, .start,
      .step(chunk_done), .running, .chunk, .chunk_last, .batch_first, .batch_last()
  );

  wire take_credit = issue && first && batch_first;
  wire take_room   = issue && first && chunk == '0;
  wire give_room   = m_sums_valid && m_sums_ready;

  always_ff @(posedge clk) begin
    if (rst || start) begin
      plane_reg  <= '0;
      credit_reg <= training.chunks;
      room_reg   <= ($clog2(SUMS) + 1)'(SUMS);
    end else begin
      if (issue) plane_reg <= last_plane ? '0 : plane_reg + 5'd1;
      credit_reg <= credit_reg - (ChunkIndexBits + 1)'(take_credit) + (ChunkIndexBits + 1)'(credit);
      room_reg   <= room_reg - ($clog2(SUMS) + 1)'(take_room) + ($clog2(SUMS) + 1)'(give_room);
    end
  end

  // ---- what travels beside a plane -----------------------------------------------------------------------------
  typedef struct packed {
    logic valid;
    logic first;        // plane of its chunk
    logic last;
    logic chunk_last;   // of its micro-batch
  } beside_t;

  beside_t [ToPlane+1:0] beside_reg;

  always_ff @(posedge clk) begin
    if (rst) beside_reg <= '0;
    else begin
      beside_reg[0] <= '{valid: issue, first: first, last: chunk_done, chunk_last: chunk_last};
      for (int unsigned i = 1; i < ToPlane + 2; i++) beside_reg[i] <= beside_reg[i-1];
    end
  end

  wire beside_t at_plane = beside_reg[ToPlane-1];
  wire beside_t at_chunk = beside_reg[ToPlane];
  wire beside_t at_end   = beside_reg[ToPlane+1];

  // ---- weights: rows and the sums of their pairs, held while their chunk's planes pass --------------------------
  pair_t [Rows-1:0][RowLanes/2-1:0] pairs_reg;

  always_ff @(posedge clk) begin
    for (int unsigned t = 0; t < Rows; t++) begin
      if (beside_reg[1+t].valid && beside_reg[1+t].first) begin
        for (int unsigned i = 0; i < RowLanes / 2; i++) begin
          pairs_reg[t][i].even <= rows[t][64*i+:32];
          pairs_reg[t][i].odd  <= rows[t][64*i+32+:32];
          pairs_reg[t][i].sum  <= 33'($signed(rows[t][64*i+:32])) + 33'($signed(rows[t][64*i+32+:32]));
        end
      end
    end
  end

  // ---- banks -----------------------------------------------------------------------------------------------------
  sums_t sums;
  logic  sums_ready;

  wire   sums_valid = at_end.valid && at_end.last && at_end.chunk_last;

  for (genvar k = 0; k < Banks; k++) begin : gen_bank
    logic [Rows-1:0][RowLanes-1:0] bits;

    for (genvar t = 0; t < Rows; t++) begin : gen_row
      delay_line #(.WIDTH(RowLanes), .STAGES(ToStep + t)) to_step (
          .clk, .d(s_word[Chunk*k+RowLanes*t+:RowLanes]), .q(bits[t])
      );
    end

    bit_serial_bank bank (
        .clk,
        .bits,
        .pairs(pairs_reg),
        .plane(at_plane.valid),
        .plane_first(at_plane.first),
        .chunk(at_chunk.valid && at_chunk.last),
        .clear(rst || start || sums_valid),
        .total(sums[k])
    );
  end

  sync_fifo #(.WIDTH($bits(sums_t)), .DEPTH(SUMS), .RAM_STYLE("block")) queue (
      .clk,
      .rst(rst || start),
      .s_data(sums),
      .s_valid(sums_valid),
      .s_ready(sums_ready),
      .m_data(m_sums),
      .m_valid(m_sums_valid),
      .m_ready(m_sums_ready),
      .level()
  );

  wire unused = &{1'b0, sums_ready, at_plane.last, at_plane.chunk_last, at_chunk.first, at_chunk.chunk_last, at_end.first};

`ifndef SYNTHESIS
  always_ff @(posedge clk) begin
    if (!rst) begin
      a_room : assert (sums_ready || !sums_valid);
      a_credit : assert (credit_reg <= training.chunks || !running || start);
    end
  end
`endif

endmodule : forward
