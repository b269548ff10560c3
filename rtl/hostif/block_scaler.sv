// Holds the vectors of block-scaled messages back until all workers have agreed on their exponents (docs/explanation/number-formats.md,
// "Numbers").  Such a message is sent as two: first announcements, vectors of zeros whose next_exp is what the first T
// vectors need (all, if there are fewer); then the data, whose next_exp is for the vector T further.  The data's own
// exponents are the next_exp of the sums that come back.  Other messages go through.
//
// A vector's need is known when all of it is in the buffer; so the buffer holds T vectors and one more.
module block_scaler
  import catchment_wire_pkg::*;
  import hostif_pkg::*;
#(
    // bytes of a vector, a multiple of 64
    parameter int unsigned VECTOR_BYTES = 256,
    // number of beats in the buffer, a power of two
    parameter int unsigned BUFFER_BEATS = 4096
) (
    input  logic              clk,
    input  logic              rst,
    // T of the stream; a message whose T is more than fits must not come
    input  logic [20:0]       slots,
    // lanes are packed: a vector has twice as many elements
    input  logic              pairs,

    // memory's beats; keep has a bit for two bytes
    input  logic [511:0]      s_axis_tdata,
    input  logic [31:0]       s_axis_tkeep,
    input  logic              s_axis_tlast,
    input  data_type_t        s_axis_dtype,
    input  logic              s_axis_block,
    // of messages that are not block-scaled
    input  logic signed [7:0] s_axis_exponent,
    input  logic              s_axis_tvalid,
    output logic              s_axis_tready,

    // high for a clock: what a vector of a block-scaled message needs, in order
    input  logic signed [7:0] need,
    input  logic              need_last,
    input  logic              need_valid,

    // high for a clock: what the workers have agreed on, in order
    input  logic signed [7:0] agreed,
    input  logic              agreed_valid,

    output logic [511:0]      m_axis_tdata,
    output logic [31:0]       m_axis_tkeep,
    output logic              m_axis_tlast,
    output data_type_t        m_axis_dtype,
    output logic signed [7:0] m_axis_exponent,
    output logic              m_axis_tvalid,
    input  logic              m_axis_tready,

    // one for each vector of a block-scaled message, before its beats
    output vector_scale_t     m_scale,
    output logic              m_scale_valid,
    input  logic              m_scale_ready
);

  localparam int unsigned Beats = VECTOR_BYTES < 64 ? 1 : VECTOR_BYTES / 64;  // the transport refuses less
  localparam int unsigned CountBits = $clog2(2 * Beats);
  // A vector of 16-bit elements is half as many beats, unless lanes are packed.  Needs that are on their way through the meter have room, too.
  localparam int unsigned Needs = 2 * BUFFER_BEATS / Beats < 64 ? 64 : 2 * BUFFER_BEATS / Beats;
  localparam int unsigned NeedsOnTheirWay = 8;

  typedef struct packed {
    logic [511:0]      data;
    logic [31:0]       keep;
    logic              last;
    data_type_t        dtype;
    logic              block;
    logic signed [7:0] exponent;
  } beat_t;

  // ---- buffer and needs ---------------------------------------------------------------------------------------
  beat_t              head;
  logic               head_valid;
  logic               head_ready;
  logic               buffer_room;
  logic [8:0]         need_head;
  logic               need_head_valid;
  logic               need_take;
  logic               need_room;
  logic [$clog2(Needs):0] needs;
  logic signed [7:0]  agreed_head;
  logic               agreed_head_valid;
  logic               agreed_take;
  logic               agreed_room;

  wire needs_room = needs < ($clog2(Needs) + 1)'(Needs - NeedsOnTheirWay);

  assign s_axis_tready = buffer_room && needs_room;

  sync_fifo #(.WIDTH($bits(beat_t)), .DEPTH(BUFFER_BEATS), .RAM_STYLE("ultra")) buffer (
      .clk,
      .rst,
      .s_data({s_axis_tdata, s_axis_tkeep, s_axis_tlast, s_axis_dtype, s_axis_block, s_axis_exponent}),
      .s_valid(s_axis_tvalid && needs_room),
      .s_ready(buffer_room),
      .m_data(head),
      .m_valid(head_valid),
      .m_ready(head_ready),
      .level()
  );

  sync_fifo #(.WIDTH(9), .DEPTH(Needs), .RAM_STYLE("block")) need_queue (
      .clk,
      .rst,
      .s_data({need_last, need}),
      .s_valid(need_valid),
      .s_ready(need_room),
      .m_data(need_head),
      .m_valid(need_head_valid),
      .m_ready(need_take),
      .level(needs)
  );

  // More than T come only if the host pulls a block-scaled message and pushes none: they are not kept.
  sync_fifo #(.WIDTH(8), .DEPTH(BUFFER_BEATS / Beats < 2 ? 2 : BUFFER_BEATS / Beats), .RAM_STYLE("block")) agreed_queue (
      .clk,
      .rst,
      .s_data(agreed),
      .s_valid(agreed_valid && agreed_room),
      .s_ready(agreed_room),
      .m_data(agreed_head),
      .m_valid(agreed_head_valid),
      .m_ready(agreed_take),
      .level()
  );

  // ---- announce, then scale -----------------------------------------------------------------------------------
  typedef enum logic [1:0] {
    PASS,      // a message that is not block-scaled, or none
    ANNOUNCE,
    WAIT,      // for the vector's exponent
    VECTOR     // the vector's beats leave
  } state_t;

  state_t                state_reg;
  logic [20:0]           announced_reg;
  logic                  told_reg;      // all needs of the message have been told
  logic signed [7:0]     exponent_reg;
  logic [CountBits-1:0]  beat_reg;      // of the vector
  vector_scale_t         scale;
  logic                  scale_room;

  wire narrow = head.dtype == DATA_TYPE_FP16 || head.dtype == DATA_TYPE_BF16;
  wire [CountBits-1:0] places = narrow == pairs ? CountBits'(Beats - 1)
                              : pairs ? CountBits'(2 * Beats - 1) : CountBits'((Beats + 1) / 2 - 1);
  wire moves = m_axis_tvalid && m_axis_tready;
  wire announces = state_reg == ANNOUNCE && need_head_valid;
  wire scales = state_reg == WAIT && agreed_head_valid && (told_reg || need_head_valid);
  wire tells = (announces || scales) && scale_room;
  wire announced_all = need_head[8] || announced_reg + 21'd1 == slots;

  assign m_axis_tdata    = head.data;
  assign m_axis_tkeep    = head.keep;
  assign m_axis_tlast    = head.last;
  assign m_axis_dtype    = head.dtype;
  assign m_axis_exponent = state_reg == VECTOR ? exponent_reg : head.exponent;
  assign m_axis_tvalid   = head_valid && (state_reg == VECTOR || (state_reg == PASS && !head.block));
  assign head_ready      = m_axis_tready && (state_reg == VECTOR || (state_reg == PASS && !head.block));

  // Beats follow a vector's scale through the converter, where several vectors may be.
  sync_fifo #(.WIDTH($bits(vector_scale_t)), .DEPTH(16), .RAM_STYLE("distributed")) scale_queue (
      .clk,
      .rst,
      .s_data(scale),
      .s_valid(announces || scales),
      .s_ready(scale_room),
      .m_data(m_scale),
      .m_valid(m_scale_valid),
      .m_ready(m_scale_ready),
      .level()
  );

  assign need_take     = tells && (announces || !told_reg);
  assign agreed_take   = tells && scales;

  always_comb begin
    scale = '{
        announces: announces,
        last: announces && announced_all,
        exponent: announces ? 8'sd0 : agreed_head,
        expv: announces || !told_reg,
        // once all needs are told the next one is another message's, and may come while this waits
        next_exp: announces || !told_reg ? need_head[7:0] : 8'sd0
    };
  end

  always_ff @(posedge clk) begin
    unique case (state_reg)
      PASS: begin
        announced_reg <= '0;
        told_reg      <= 1'b0;
        if (head_valid && head.block) state_reg <= ANNOUNCE;
      end
      ANNOUNCE: if (tells) begin
        announced_reg <= announced_reg + 21'd1;
        told_reg      <= need_head[8];
        if (announced_all) state_reg <= WAIT;
      end
      WAIT: begin
        beat_reg     <= '0;
        exponent_reg <= agreed_head;
        if (tells) begin
          told_reg  <= told_reg || need_head[8];
          state_reg <= VECTOR;
        end
      end
      VECTOR: if (moves) begin
        beat_reg <= beat_reg + 1'b1;
        if (head.last) state_reg <= PASS;
        else if (beat_reg == places) state_reg <= WAIT;
      end
      default: state_reg <= PASS;
    endcase
    if (rst) state_reg <= PASS;
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk) if (!rst) a_needs : assert (!need_valid || need_room);
`else
  wire unused = &{1'b0, need_room};
`endif

endmodule : block_scaler
