// Forward propagation of an engine: takes words as they come, fetches each chunk's weights beside its first planes, and
// gives the banks' sums once a micro-batch.  A chunk takes as many clocks as it has planes, at least four (its rows).
// The first micro-batch of a mini-batch takes a credit for each chunk: the update has written it (Algorithm 1, lines 14-21).
//
//   clock 0      a plane is issued, its word goes to the replay FIFO; with the first four planes rows 0..3 are asked for
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

    // row `row_index` arrives two clocks later
    output logic [ChunkIndexBits+1:0] row_index,
    input  logic [RowBits-1:0]        row,
    // the update has written a chunk
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
  logic [2:0]                row_reg;      // rows asked for
  logic [ChunkIndexBits:0]   credit_reg;
  logic [$clog2(SUMS):0]     room_reg;

  wire first     = plane_reg == 5'd0;
  wire may_begin = row_reg == 3'd0 && (!batch_first || credit_reg != '0) && (chunk != '0 || room_reg != '0);
  wire wants     = running && (first ? may_begin : plane_reg != training.bits);
  wire issue     = wants && s_word_valid && replay_ready;
  wire ask       = row_reg == 3'd0 ? issue : row_reg != 3'(Rows);
  wire [4:0] planes_after = plane_reg + 5'(issue);
  wire [2:0] rows_after   = row_reg + 3'(ask);

  assign chunk_done   = planes_after == training.bits && rows_after == 3'(Rows);
  assign s_word_ready = wants && replay_ready;
  assign replay_valid = wants && s_word_valid;
  assign row_index    = {chunk, row_reg[1:0]};
  assign busy         = running;

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
      row_reg    <= '0;
      credit_reg <= training.chunks;
      room_reg   <= ($clog2(SUMS) + 1)'(SUMS);
    end else begin
      plane_reg  <= chunk_done ? '0 : planes_after;
      row_reg    <= chunk_done ? '0 : rows_after;
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
      beside_reg[0] <= '{valid: issue, first: first, last: planes_after == training.bits, chunk_last: chunk_last};
      for (int unsigned i = 1; i < ToPlane + 2; i++) beside_reg[i] <= beside_reg[i-1];
    end
  end

  wire beside_t at_plane = beside_reg[ToPlane-1];
  wire beside_t at_chunk = beside_reg[ToPlane];
  wire beside_t at_end   = beside_reg[ToPlane+1];

  // ---- weights: a row and the sums of its pairs, held while its chunk's planes pass -----------------------------
  logic  [Rows-1:0]                  arrives_reg[2];
  pair_t [Rows-1:0][RowLanes/2-1:0]  pairs_reg;

  always_ff @(posedge clk) begin
    for (int unsigned t = 0; t < Rows; t++) arrives_reg[0][t] <= ask && row_reg == 3'(t);
    arrives_reg[1] <= arrives_reg[0];
    for (int unsigned t = 0; t < Rows; t++) begin
      if (arrives_reg[1][t]) begin
        for (int unsigned i = 0; i < RowLanes / 2; i++) begin
          pairs_reg[t][i].even <= row[64*i+:32];
          pairs_reg[t][i].odd  <= row[64*i+32+:32];
          pairs_reg[t][i].sum  <= 33'($signed(row[64*i+:32])) + 33'($signed(row[64*i+32+:32]));
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
      a_credit : assert (credit_reg <= training.chunks || start);
    end
  end
`endif

endmodule : forward
