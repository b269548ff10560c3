// Checks a training's settings for what the engines take for granted (glm_pkg, training_t), and says a clock later why
// the training cannot begin.
module start_check
  import glm_numbers_pkg::*;
  import glm_pkg::*;
#(
    parameter int unsigned ENGINES = 8,
    parameter int unsigned MODEL_ROWS = 16384,
    parameter int unsigned REPLAY_WORDS = 8192
) (
    input  logic                     clk,
    input  training_t                training,
    input  logic [ENGINES-1:0][63:0] base,
    input  logic [63:0]              label_base,
    input  logic                     rounds_on,
    input  logic                     busy,
    // the fields of FAULTS, first one lowest
    output logic [8:0]               faults
);

  localparam int unsigned ProductBits = $bits(training.chunks) + $bits(training.bits);

  // A product of LUTs: five additions.
  logic [ProductBits-1:0] words;
  logic                   bases_good;

  always_comb begin
    words = '0;
    for (int unsigned i = 0; i < $bits(training.bits); i++) begin
      if (training.bits[i]) words += ProductBits'(training.chunks) << i;
    end
    bases_good = label_base[$clog2(WordBytes)-1:0] == '0;
    for (int unsigned e = 0; e < ENGINES; e++) begin
      if (base[e][$clog2(ChunkBytes)-1:0] != '0) bases_good = 1'b0;
    end
  end

  always_ff @(posedge clk) begin
    faults <= {
      !bases_good,
      training.forward_shift == 5'd0 || training.forward_shift > 5'd24 || training.update_shift > 6'd47,
      !(training.loss inside {LOSS_SQUARES, LOSS_LOGISTIC, LOSS_HINGE}),
      training.micro_batches == 32'd0 || training.batch == 32'd0 || training.epochs == 16'd0,
      words > ProductBits'(REPLAY_WORDS),
      training.chunks == '0 || 32'(training.chunks) > 32'(MODEL_ROWS / Rows),
      training.bits == 5'd0 || training.bits > 5'(Planes),
      !rounds_on,
      busy
    };
  end

  wire unused = &{1'b0, training.multiplier, label_base[63:$clog2(WordBytes)]};

endmodule : start_check
