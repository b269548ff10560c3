// An engine: 8 banks x 64 bit-serial multipliers, its share of the model on chip, and what follows from it (P4SGD, IV-A2).
module engine
  import glm_numbers_pkg::*;
  import glm_pkg::*;
#(
    // rows of 16 weights, a power of two, at least 8: 16384 are 256 K weights
    parameter int unsigned MODEL_ROWS = 16384,
    // words between forward and backward propagation, a power of two: a micro-batch's planes, and those read while its sums travel
    parameter int unsigned REPLAY_WORDS = 8192,
    localparam int unsigned IndexBits = $clog2(MODEL_ROWS),
    localparam int unsigned ChunkBits = IndexBits - $clog2(Rows)
) (
    input  logic                 clk,
    input  logic                 rst,
    input  training_t            training,
    input  logic                 start,
    output logic                 busy,

    input  logic [WordBits-1:0]  s_word,
    input  logic                 s_word_valid,
    output logic                 s_word_ready,

    output sums_t                m_sums,
    output logic                 m_sums_valid,
    input  logic                 m_sums_ready,

    input  scales_t              s_scales,
    input  logic                 s_scales_valid,
    // there is room for those on their way
    output logic                 scales_room,

    // the model, while no training runs; a row that is asked for arrives four clocks later
    input  logic                 model_write,
    input  logic [IndexBits-1:0] model_row,
    input  logic [RowBits-1:0]   model_in,
    output logic [RowBits-1:0]   model_out,

    // weights that were cut in this clock
    output logic [4:0]           saturated
);

  // verilator no_inline_module

  if (MODEL_ROWS < 2 * Rows || MODEL_ROWS != 1 << IndexBits) begin : gen_bad_rows
    $fatal(1, "engine: MODEL_ROWS must be a power of two, at least 8");
  end

  // ---- forward -----------------------------------------------------------------------------------------------
  logic                      forward_busy;
  logic                      replay_in_valid;
  logic                      replay_in_ready;
  logic                      credit;
  logic [Rows-1:0][ChunkIndexBits-1:0] forward_chunk;
  logic [Rows-1:0][RowBits-1:0]        forward_weights;

  forward ahead (
      .clk, .rst, .training, .start, .busy(forward_busy),
      .s_word, .s_word_valid, .s_word_ready,
      .replay_valid(replay_in_valid), .replay_ready(replay_in_ready),
      .row_chunk(forward_chunk), .rows(forward_weights), .credit,
      .m_sums, .m_sums_valid, .m_sums_ready
  );

  // ---- the planes, until the activations are known -----------------------------------------------------------
  logic [WordBits-1:0] replay;
  logic                replay_valid;
  logic                replay_ready;

  sync_fifo #(.WIDTH(WordBits), .DEPTH(REPLAY_WORDS), .RAM_STYLE("block")) replay_fifo (
      .clk, .rst(rst || start),
      .s_data(s_word), .s_valid(replay_in_valid), .s_ready(replay_in_ready),
      .m_data(replay), .m_valid(replay_valid), .m_ready(replay_ready),
      .level()
  );

  // ---- scales of the micro-batches whose activations are known ------------------------------------------------
  scales_t    scales;
  logic       scales_valid;
  logic       scales_ready;
  logic [4:0] scales_level;

  assign scales_room = scales_level < 5'd8;

  sync_fifo #(.WIDTH($bits(scales_t)), .DEPTH(16), .RAM_STYLE("block")) scales_fifo (
      .clk, .rst(rst || start),
      .s_data(s_scales), .s_valid(s_scales_valid), .s_ready(),
      .m_data(scales), .m_valid(scales_valid), .m_ready(scales_ready),
      .level(scales_level)
  );

  // ---- backward ------------------------------------------------------------------------------------------------
  logic                      backward_busy;
  logic                      update_busy;
  logic                      chunk_valid;
  logic [ChunkIndexBits-1:0] chunk_index;
  logic                      chunk_first;
  logic                      chunk_last;
  gradient_t [Rows-1:0][RowLanes-1:0] so_far;
  logic      [Rows-1:0]               so_far_valid;
  gradient_t [Rows-1:0][RowLanes-1:0] gradients;

  backward behind (
      .clk, .rst, .training, .start, .busy(backward_busy),
      .s_word(replay), .s_word_valid(replay_valid), .s_word_ready(replay_ready),
      .scales_entered(s_scales_valid), .scales_in(scales), .scales_taken(scales_ready),
      .chunk_valid, .chunk_index, .chunk_first, .chunk_last,
      .so_far, .so_far_valid, .m_sums(gradients)
  );

  logic [Rows-1:0]                update_read;
  logic [Rows-1:0][ChunkBits-1:0] update_read_chunk;
  logic [Rows-1:0][RowBits-1:0]   update_weights;
  logic [Rows-1:0]                write;
  logic [Rows-1:0][ChunkBits-1:0] write_chunk;
  logic [RowBits-1:0]             write_weights;

  gradient_update #(.MODEL_ROWS(MODEL_ROWS)) update (
      .clk, .rst, .shift(training.update_shift),
      .chunk_valid, .chunk_index(chunk_index[ChunkBits-1:0]), .chunk_first, .chunk_last,
      .so_far, .so_far_valid, .sums(gradients),
      .read(update_read), .read_chunk(update_read_chunk), .weights(update_weights),
      .write, .write_chunk, .write_weights,
      .load(model_write), .load_row(model_row), .load_weights(model_in),
      .credit, .saturated, .busy(update_busy)
  );

  // What is read from outside goes through the update, which takes nothing from it.
  assign model_out = write_weights;

  // ---- the model, twice: a port to read for each direction --------------------------------------------------------
  for (genvar t = 0; t < Rows; t++) begin : gen_row
    row_ram #(.WIDTH(RowBits), .DEPTH(MODEL_ROWS / Rows)) model_ahead (
        .clk, .write(write[t]), .write_row(write_chunk[t]), .write_data(write_weights),
        .read(1'b1), .read_row(forward_chunk[t][ChunkBits-1:0]), .read_data(forward_weights[t])
    );

    row_ram #(.WIDTH(RowBits), .DEPTH(MODEL_ROWS / Rows)) model_behind (
        .clk, .write(write[t]), .write_row(write_chunk[t]), .write_data(write_weights),
        .read(busy ? update_read[t] : model_row[1:0] == 2'(t)),
        .read_row(busy ? update_read_chunk[t] : model_row[IndexBits-1:2]), .read_data(update_weights[t])
    );
  end

  assign busy = forward_busy || backward_busy || update_busy;

  // Rows beyond those of this build are never asked for: `chunks` is checked where a training begins.
  if (ChunkBits < ChunkIndexBits) begin : gen_unused
    wire [Rows:0] unused;
    for (genvar t = 0; t < Rows; t++) begin : gen_row
      assign unused[t] = &{1'b0, forward_chunk[t][ChunkIndexBits-1:ChunkBits]};
    end
    assign unused[Rows] = &{1'b0, chunk_index[ChunkIndexBits-1:ChunkBits]};
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk) begin
    if (!rst) a_scales : assert (!scales_ready || scales_valid);
  end
`else
  wire unused_valid = &{1'b0, scales_valid};
`endif

endmodule : engine
