// Makes a worker's partial activations: adds the engines' sums, rounds and cuts them (sim/golden/glm.py, `forward`).
//
//   clock 0     all engines' sums are here and taken        clock 3..5  shifted
//   clock 1, 2  pairs of engines, then all                  clock 6     rounded, cut: at the output from clock 7
module activations
  import glm_numbers_pkg::*;
  import glm_pkg::*;
#(
    parameter int unsigned ENGINES = 8
) (
    input  logic                clk,
    input  logic                rst,
    input  logic [4:0]          shift,

    input  sums_t [ENGINES-1:0] s_sums,
    input  logic  [ENGINES-1:0] s_sums_valid,
    output logic                s_sums_ready,

    output lanes_t              m_lanes,
    // how many values of m_lanes were cut
    output logic [3:0]          m_saturated,
    output logic                m_valid,
    input  logic                m_ready
);

  localparam int unsigned Stages = 6;
  localparam int unsigned Halves = (ENGINES + 1) / 2;

  // The module takes only as many sums as the queue at its end has room for.
  logic [3:0] room_reg;
  wire        take = (&s_sums_valid) && room_reg != 4'd0;
  logic       moving;

  assign s_sums_ready = take;

  delay_line_valid #(.STAGES(Stages)) valid_line (.clk, .rst, .d(take), .q(moving));

  lanes_t            lanes;
  logic [Banks-1:0]  cut;

  for (genvar k = 0; k < Banks; k++) begin : gen_bank
    accumulator_t half_reg[Halves];
    accumulator_t total_reg;
    accumulator_t total;
    accumulator_t shifted;
    logic         up;

    always_comb begin
      total = '0;
      for (int unsigned i = 0; i < Halves; i++) total += half_reg[i];
    end

    always_ff @(posedge clk) begin
      for (int unsigned i = 0; i < Halves; i++) begin
        half_reg[i] <= 2 * i + 1 < ENGINES ? s_sums[2*i][k] + s_sums[(2*i+1)%ENGINES][k] : s_sums[2*i][k];
      end
      total_reg <= total;
    end

    rounding_shift #(.WIDTH(AccumulatorBits), .SHIFT_BITS(5)) shifter (.clk, .shift, .d(total_reg), .q(shifted), .up);

    // q + 1 may be one beyond the end, so compare before the addition.
    wire high = shifted >= AccumulatorBits'(ActivationLimit) && (up || shifted != AccumulatorBits'(ActivationLimit));
    wire low  = shifted < -AccumulatorBits'(ActivationLimit) && !(up && shifted == -AccumulatorBits'(ActivationLimit) - 1'b1);

    logic signed [ActivationBits-1:0] lane_reg;
    logic                             cut_reg;
    always_ff @(posedge clk) begin
      lane_reg <= high ? ActivationBits'(ActivationLimit) : low ? -ActivationBits'(ActivationLimit)
                       : shifted[ActivationBits-1:0] + ActivationBits'(up);
      cut_reg  <= high || low;
    end
    assign lanes[k] = 32'(lane_reg);
    assign cut[k]   = cut_reg;
  end

  logic [3:0] cuts;
  always_comb begin
    cuts = 4'd0;
    for (int unsigned k = 0; k < Banks; k++) cuts += 4'(cut[k]);
  end

  // ---- until they are sent ---------------------------------------------------------------------------------------
  wire leave = m_valid && m_ready;
  logic queue_ready;

  always_ff @(posedge clk) begin
    if (rst) room_reg <= 4'd8;
    else room_reg <= room_reg - 4'(take) + 4'(leave);
  end

  sync_fifo #(.WIDTH($bits(lanes_t) + 4), .DEPTH(8), .RAM_STYLE("distributed")) queue (
      .clk, .rst,
      .s_data({cuts, lanes}), .s_valid(moving), .s_ready(queue_ready),
      .m_data({m_saturated, m_lanes}), .m_valid, .m_ready,
      .level()
  );

  wire unused = &{1'b0, queue_ready};

endmodule : activations
