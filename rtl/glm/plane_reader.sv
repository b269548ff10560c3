// Reads a training's words from memory by AXI4 bursts, epoch after epoch, as far ahead as its buffer has room: features do
// not depend on the model.  A chunk's planes are one burst at a multiple of STEP_BYTES, which no 4 KiB boundary divides.
`include "ports.svh"

module plane_reader
  import glm_pkg::*;
#(
    // from the begin of a chunk to that of the next
    parameter int unsigned STEP_BYTES = ChunkBytes,
    // number of words that may be asked for and not handed over yet, a power of two; memory's latency decides how many
    parameter int unsigned BUFFER_WORDS = 256
) (
    input  logic                    clk,
    input  logic                    rst,
    input  logic                    start,
    // high: no new burst begins; words already asked for arrive and are thrown away, then `busy` falls
    input  logic                    stop,
    output logic                    busy,
    // memory answered with an error since the start
    output logic                    error,

    input  logic [63:0]             base,
    // words of a chunk, chunks of a micro-batch, micro-batches of an epoch, epochs
    input  logic [4:0]              words,
    input  logic [ChunkIndexBits:0] chunks,
    input  logic [31:0]             micro_batches,
    input  logic [15:0]             epochs,

    `AXI_READ_PORTS(m_axi),

    output logic [WordBits-1:0]     m_word,
    output logic                    m_word_valid,
    input  logic                    m_word_ready
);

  localparam int unsigned RoomBits = $clog2(BUFFER_WORDS) + 1;

  if (BUFFER_WORDS != 1 << (RoomBits - 1) || BUFFER_WORDS < 16) begin : gen_bad_buffer
    $fatal(1, "plane_reader: BUFFER_WORDS must be a power of two, at least 16");
  end
  if (STEP_BYTES > 1024 || (STEP_BYTES & (STEP_BYTES - 1)) != 0) begin : gen_bad_step
    $fatal(1, "plane_reader: STEP_BYTES must be a power of two, at most 1024");
  end

  logic                    running_reg;
  logic [63:0]             address_reg;
  logic [ChunkIndexBits:0] chunk_reg;
  logic [31:0]             micro_batch_reg;
  logic [15:0]             epoch_reg;
  logic [RoomBits-1:0]     room_reg;
  logic                    error_reg;
  logic                    buffer_ready;

  wire chunk_last       = chunk_reg == chunks - 1'b1;
  wire micro_batch_last = micro_batch_reg == micro_batches - 32'd1;
  wire issue            = running_reg && !stop && room_reg >= RoomBits'(words) && (!m_axi_arvalid || m_axi_arready);
  wire hand_over        = m_word_valid && (m_word_ready || stop);

  assign m_axi_rready = 1'b1;
  assign error        = error_reg;
  assign busy         = running_reg || m_axi_arvalid || room_reg != RoomBits'(BUFFER_WORDS);

  always_ff @(posedge clk) begin
    if (!m_axi_arvalid || m_axi_arready) begin
      m_axi_araddr <= address_reg;
      m_axi_arlen  <= 8'(words) - 8'd1;
    end
    if (rst) begin
      running_reg   <= 1'b0;
      m_axi_arvalid <= 1'b0;
      room_reg      <= RoomBits'(BUFFER_WORDS);
      error_reg     <= 1'b0;
    end else begin
      if (!m_axi_arvalid || m_axi_arready) m_axi_arvalid <= issue;
      room_reg <= room_reg - (issue ? RoomBits'(words) : '0) + RoomBits'(hand_over);
      if (stop) running_reg <= 1'b0;
      else if (start) running_reg <= 1'b1;
      else if (issue && chunk_last && micro_batch_last && epoch_reg == epochs - 16'd1) running_reg <= 1'b0;
      if (start) error_reg <= 1'b0;
      else if (m_axi_rvalid && m_axi_rresp[1]) error_reg <= 1'b1;
    end
    if (start) begin
      address_reg     <= base;
      chunk_reg       <= '0;
      micro_batch_reg <= '0;
      epoch_reg       <= '0;
    end else if (issue) begin
      address_reg <= chunk_last && micro_batch_last ? base : address_reg + 64'(STEP_BYTES);
      chunk_reg   <= chunk_last ? '0 : chunk_reg + 1'b1;
      if (chunk_last) micro_batch_reg <= micro_batch_last ? '0 : micro_batch_reg + 32'd1;
      if (chunk_last && micro_batch_last) epoch_reg <= epoch_reg + 16'd1;
    end
  end

  sync_fifo #(.WIDTH(WordBits), .DEPTH(BUFFER_WORDS), .RAM_STYLE(BUFFER_WORDS < 64 ? "distributed" : "block")) buffer (
      .clk, .rst,
      .s_data(m_axi_rdata), .s_valid(m_axi_rvalid), .s_ready(buffer_ready),
      .m_data(m_word), .m_valid(m_word_valid), .m_ready(m_word_ready || stop),
      .level()
  );

  // The length that was asked for says where a burst ends.
  wire unused = &{1'b0, m_axi_rlast, m_axi_rresp[0], buffer_ready};

`ifndef SYNTHESIS
  always_ff @(posedge clk) begin
    if (!rst) begin
      a_room : assert (!m_axi_rvalid || buffer_ready);
      a_4k : assert (!m_axi_arvalid || {1'b0, m_axi_araddr[11:0]} + {m_axi_arlen[6:0] + 7'd1, 6'd0} <= 13'd4096);
    end
  end
`endif

endmodule : plane_reader
