// A worker of P4SGD (section IV): ENGINES engines with a memory port each, the all-reduce of their activations through
// p4sgd.p4, and the loss that makes scales of them.
//
//   memories -> readers -> engines --sums--> activations -> round client -> MAC
//                            ^                                   |
//                            `------- scales <- loss <- sums of all workers, labels <- memory
`include "ports.svh"

module glm_worker
  import glm_numbers_pkg::*;
  import glm_pkg::*;
#(
    parameter int unsigned ENGINES = 8,
    // of an engine: rows of 16 weights, words between forward and backward propagation, words read ahead; powers of two
    parameter int unsigned MODEL_ROWS = 16384,
    parameter int unsigned REPLAY_WORDS = 8192,
    parameter int unsigned BUFFER_WORDS = 256,
    // number of rounds in flight, a power of two, 2..32768
    parameter int unsigned SLOTS = RoundSlots,
    localparam int unsigned IndexBits = $clog2(MODEL_ROWS),
    localparam int unsigned EngineBits = ENGINES > 1 ? $clog2(ENGINES) : 1
) (
    input  logic                     clk,
    input  logic                     rst,

    input  rounds_t                  rounds,
    input  training_t                training,
    // where an engine's words begin, and the labels: 64 bytes a micro-batch, 8 x int32 first
    input  logic [ENGINES-1:0][63:0] base,
    input  logic [63:0]              label_base,
    input  logic                     start,
    // an end before the end: first `stop`, until `reading` falls, then `clear` for 32 clocks; rounds are off meanwhile
    input  logic                     stop,
    input  logic                     clear,
    output logic                     reading,
    output logic                     busy,
    output worker_counts_t           counts,
    output worker_events_t           events,

    // an engine's memory port
    `AXI_READ_PORTS(m_axi, [ENGINES-1:0]),

    // the labels'
    `AXI_READ_PORTS(m_axi_label),

    // the model, while nothing is busy; a row that is asked for arrives four clocks later
    input  logic                     model_write,
    input  logic [EngineBits-1:0]    model_engine,
    input  logic [IndexBits-1:0]     model_row,
    input  logic [RowBits-1:0]       model_in,
    output logic [RowBits-1:0]       model_out,

    `AXIS_FRAME_OUT_PORTS(m_axis_tx),

    `AXIS_FRAME_IN_PORTS(s_axis_rx)
);

  if (ENGINES < 1 || ENGINES > 8) begin : gen_bad_engines
    $fatal(1, "glm_worker: ENGINES must be 1 to 8");
  end
  if (MODEL_ROWS > EngineWeights / RowLanes) begin : gen_bad_rows
    $fatal(1, "glm_worker: MODEL_ROWS is more than an engine's memory has");
  end

  // ---- an end before the end: the MAC's frames are left alone, those under way pass ------------------------------
  wire     fresh = rst || clear;
  rounds_t rounds_now;

  always_comb begin
    rounds_now        = rounds;
    rounds_now.enable = rounds.enable && !stop && !clear;
  end

  // ---- engines ---------------------------------------------------------------------------------------------------
  sums_t [ENGINES-1:0]              sums;
  logic  [ENGINES-1:0]              sums_valid;
  logic                             sums_taken;
  scales_t                          scales;
  logic                             scales_valid;
  logic  [ENGINES-1:0]              scales_room;
  logic  [ENGINES-1:0]              engine_busy;
  logic  [ENGINES-1:0]              reader_busy;
  logic  [ENGINES-1:0]              reader_error;
  logic  [ENGINES-1:0]              word_missing;
  logic  [ENGINES-1:0][4:0]         cut_weights;
  logic  [ENGINES-1:0][RowBits-1:0] models;

  for (genvar e = 0; e < ENGINES; e++) begin : gen_engine
    logic [WordBits-1:0] word;
    logic                word_valid;
    logic                word_ready;

    plane_reader #(.BUFFER_WORDS(BUFFER_WORDS)) reader (
        .clk, .rst, .start, .stop, .busy(reader_busy[e]), .error(reader_error[e]),
        .base(base[e]), .words(training.bits), .chunks(training.chunks),
        .micro_batches(training.micro_batches), .epochs(training.epochs),
        `AXI_READ_CONNECT(m_axi, m_axi, [e]),
        .m_word(word), .m_word_valid(word_valid), .m_word_ready(word_ready)
    );

    engine #(.MODEL_ROWS(MODEL_ROWS), .REPLAY_WORDS(REPLAY_WORDS)) unit (
        .clk, .rst(fresh), .training, .start, .busy(engine_busy[e]),
        .s_word(word), .s_word_valid(word_valid), .s_word_ready(word_ready),
        .m_sums(sums[e]), .m_sums_valid(sums_valid[e]), .m_sums_ready(sums_taken),
        .s_scales(scales), .s_scales_valid(scales_valid), .scales_room(scales_room[e]),
        .model_write(model_write && model_engine == EngineBits'(e)), .model_row, .model_in, .model_out(models[e]),
        .saturated(cut_weights[e])
    );

    assign word_missing[e] = word_ready && !word_valid;
  end

  assign model_out = models[model_engine];

  // ---- all-reduce ------------------------------------------------------------------------------------------------
  lanes_t     partial;
  logic [3:0] partial_cut;
  logic       partial_valid;
  logic       partial_ready;
  lanes_t     full;
  logic       full_saturated;
  logic       full_valid;
  logic       full_ready;
  logic       rounds_idle;

  activations #(.ENGINES(ENGINES)) add (
      .clk, .rst(fresh), .shift(training.forward_shift),
      .s_sums(sums), .s_sums_valid(sums_valid), .s_sums_ready(sums_taken),
      .m_lanes(partial), .m_saturated(partial_cut), .m_valid(partial_valid), .m_ready(partial_ready)
  );

  round_client #(.SLOTS(SLOTS)) client (
      .clk, .rst, .rounds(rounds_now),
      .s_lanes(partial), .s_saturated(partial_cut != 4'd0), .s_valid(partial_valid), .s_ready(partial_ready),
      .m_lanes(full), .m_saturated(full_saturated), .m_valid(full_valid), .m_ready(full_ready),
      `AXIS_FRAME_CONNECT(m_axis, m_axis_tx),
      `AXIS_FRAME_CONNECT(s_axis, s_axis_rx),
      .counts(counts.rounds), .idle(rounds_idle), .next()
  );

  // ---- labels, loss ----------------------------------------------------------------------------------------------
  logic [WordBits-1:0] labels;
  logic                labels_valid;
  logic                labels_busy;
  logic                labels_error;

  plane_reader #(.STEP_BYTES(WordBytes), .BUFFER_WORDS(32)) label_reader (
      .clk, .rst, .start, .stop, .busy(labels_busy), .error(labels_error),
      .base(label_base), .words(5'd1), .chunks((ChunkIndexBits + 1)'(1)),
      .micro_batches(training.micro_batches), .epochs(training.epochs),
      `AXI_READ_CONNECT(m_axi, m_axi_label),
      .m_word(labels), .m_word_valid(labels_valid), .m_word_ready(full_valid && full_ready)
  );

  assign full_ready = labels_valid && (&scales_room);

  delay_line_valid #(.STAGES(6)) loss_valid (.clk, .rst(fresh), .d(full_valid && full_ready), .q(scales_valid));

  for (genvar k = 0; k < Banks; k++) begin : gen_lane
    loss_lane lane (
        .clk, .loss(training.loss), .multiplier(training.multiplier),
        .activation(full[k]), .label(labels[32*k+:32]), .scale(scales[k])
    );
  end

  // ---- what happened ---------------------------------------------------------------------------------------------
  logic        busy_reg;
  logic [31:0] cut_reg;
  logic [31:0] clocks_reg;
  logic [31:0] starved_reg;
  logic        saturated_reg;
  logic [6:0]  cut_now;

  always_comb begin
    cut_now = partial_valid && partial_ready ? 7'(partial_cut) : 7'd0;
    for (int unsigned e = 0; e < ENGINES; e++) cut_now += 7'(cut_weights[e]);
  end

  assign events = '{
      sums: sums_taken,
      sent: m_axis_tx_tvalid && m_axis_tx_tready && m_axis_tx_tlast,
      full: full_valid && full_ready,
      scales: scales_valid
  };
  assign reading          = (|reader_busy) || labels_busy;
  assign busy             = busy_reg;
  assign counts.saturated = cut_reg;
  assign counts.clocks    = clocks_reg;
  assign counts.starved   = starved_reg;
  assign counts.peer_saturated = saturated_reg;
  assign counts.error     = (|reader_error) || labels_error;

  always_ff @(posedge clk) begin
    if (rst) busy_reg <= 1'b0;
    else busy_reg <= start || (|engine_busy) || reading || !rounds_idle;
    if (rst || start) begin
      cut_reg       <= '0;
      clocks_reg    <= '0;
      starved_reg   <= '0;
      saturated_reg <= 1'b0;
    end else begin
      cut_reg     <= cut_reg + 32'(cut_now);
      clocks_reg  <= clocks_reg + 32'(|engine_busy);
      starved_reg <= starved_reg + 32'(|word_missing);
      if (full_valid && full_ready && full_saturated) saturated_reg <= 1'b1;
    end
  end

  wire unused = &{1'b0, labels[511:256]};

endmodule : glm_worker
