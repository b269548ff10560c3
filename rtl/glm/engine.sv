// An engine: 8 banks x 64 bit-serial multipliers, its share of the model on chip, and what follows from it (P4SGD, IV-A2).
module engine
  import glm_numbers_pkg::*;
  import glm_pkg::*;
#(
    // rows of 16 weights, a power of two: 16384 are 256 K weights
    parameter int unsigned MODEL_ROWS = 16384,
    // words between forward and backward propagation, a power of two: a micro-batch's planes, and those read while its sums travel
    parameter int unsigned REPLAY_WORDS = 8192,
    localparam int unsigned IndexBits = $clog2(MODEL_ROWS)
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

    // the model, while no training runs; a row that is asked for arrives two clocks later
    input  logic                 model_write,
    input  logic [IndexBits-1:0] model_row,
    input  logic [RowBits-1:0]   model_in,
    output logic [RowBits-1:0]   model_out,

    // weights that were cut in this clock
    output logic [4:0]           saturated
);

  // verilator no_inline_module

  // ---- forward -----------------------------------------------------------------------------------------------
  logic                      forward_busy;
  logic                      replay_in_valid;
  logic                      replay_in_ready;
  logic [ChunkIndexBits+1:0] forward_row;
  logic [RowBits-1:0]        forward_weights;
  logic                      credit;

  forward ahead (
      .clk, .rst, .training, .start, .busy(forward_busy),
      .s_word, .s_word_valid, .s_word_ready,
      .replay_valid(replay_in_valid), .replay_ready(replay_in_ready),
      .row_index(forward_row), .row(forward_weights), .credit,
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
  logic                      row_valid;
  logic [ChunkIndexBits+1:0] row_index;
  logic                      row_first;
  logic                      row_last;
  gradient_t [RowLanes-1:0]  so_far;
  logic                      so_far_valid;
  gradient_t [RowLanes-1:0]  gradients;

  backward behind (
      .clk, .rst, .training, .start, .busy(backward_busy),
      .s_word(replay), .s_word_valid(replay_valid), .s_word_ready(replay_ready),
      .scales_entered(s_scales_valid), .scales_in(scales), .scales_taken(scales_ready),
      .row_valid, .row_index, .row_first, .row_last,
      .so_far, .so_far_valid, .m_sums(gradients)
  );

  logic [IndexBits-1:0] update_row;
  logic                 update_write;
  logic [IndexBits-1:0] update_write_row;
  logic [RowBits-1:0]   update_weights;

  gradient_row #(.MODEL_ROWS(MODEL_ROWS)) update (
      .clk, .rst, .shift(training.update_shift),
      .row_valid, .row_index(row_index[IndexBits-1:0]), .row_first, .row_last,
      .so_far, .so_far_valid, .sums(gradients),
      .weight_row(update_row), .weights(model_out),
      .write(update_write), .write_row(update_write_row), .write_weights(update_weights),
      .saturated, .busy(update_busy)
  );

  always_ff @(posedge clk) credit <= !rst && update_write && update_write_row[1:0] == 2'd3;

  // ---- the model, twice: a port to read for each direction --------------------------------------------------------
  wire                 write         = update_write || model_write;
  wire [IndexBits-1:0] write_row     = update_write ? update_write_row : model_row;
  wire [RowBits-1:0]   write_weights = update_write ? update_weights : model_in;

  row_ram #(.WIDTH(RowBits), .DEPTH(MODEL_ROWS)) model_ahead (
      .clk, .write, .write_row, .write_data(write_weights),
      .read_row(forward_row[IndexBits-1:0]), .read_data(forward_weights)
  );

  row_ram #(.WIDTH(RowBits), .DEPTH(MODEL_ROWS)) model_behind (
      .clk, .write, .write_row, .write_data(write_weights),
      .read_row(busy ? update_row : model_row), .read_data(model_out)
  );

  assign busy = forward_busy || backward_busy || update_busy;

  // Rows beyond those of this build are never asked for: `chunks` is checked where a training begins.
  if (IndexBits < ChunkIndexBits + 2) begin : gen_unused
    wire unused = &{1'b0, forward_row[ChunkIndexBits+1:IndexBits], row_index[ChunkIndexBits+1:IndexBits]};
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk) begin
    if (!rst) a_scales : assert (!scales_ready || scales_valid);
  end
`else
  wire unused_valid = &{1'b0, scales_valid};
`endif

endmodule : engine
