// Writes of entries, one address each, as AXI4 bursts: neighbours go together, never across 4 KiB.  Says when memory has all
// that came before a mark.
`include "ports.svh"

module entry_writer #(
    parameter int unsigned ADDRESS_BITS = 32,
    // of the longest burst; a power of two, at most 64
    parameter int unsigned BURST_BEATS = 16
) (
    input  logic                    clk,
    input  logic                    rst,

    // in entries of 64 bytes
    input  logic                    s_valid,
    output logic                    s_ready,
    input  logic [ADDRESS_BITS-1:0] s_address,
    input  logic [511:0]            s_data,
    // `mark` is high for a clock; `marked` follows when what came before it is in memory, for 16 marks at a time
    input  logic                    mark,
    output logic                    marked,

    `AXI_WRITE_PORTS(m_axi),

    // one clock for each burst that memory refused
    output logic                    error
);

  localparam int unsigned BeatBits = $clog2(BURST_BEATS) + 1;
  // bursts that are not answered, at most
  localparam int unsigned Bursts = 16;
  localparam int unsigned Marks = 16;
  localparam int unsigned CountBits = 16;

  typedef logic [CountBits-1:0] count_t;

  // ---- bursts are put together; a beat waits for its neighbour, to know whether it is the last -------------------
  logic                    held_reg;
  logic [ADDRESS_BITS-1:0] first_reg, after_reg;
  logic [BeatBits-1:0]     beats_reg;
  logic [511:0]            beat_reg;
  logic                    beat_ready, length_ready, address_free;

  wire joins = s_valid && s_address == after_reg && after_reg[5:0] != '0 && beats_reg != BeatBits'(BURST_BEATS);
  wire closes = held_reg && !joins;
  // The beat that is held moves on: with a neighbour behind it, or as the last one.
  wire moves = held_reg && beat_ready && (!closes || (length_ready && address_free));

  assign s_ready = !held_reg || moves;
  assign address_free = !m_axi_awvalid || m_axi_awready;

  wire take = s_valid && s_ready;

  always_ff @(posedge clk) begin
    if (take) begin
      beat_reg  <= s_data;
      after_reg <= s_address + 1'b1;
      if (held_reg && joins) begin
        beats_reg <= beats_reg + 1'b1;
      end else begin
        first_reg <= s_address;
        beats_reg <= BeatBits'(1);
      end
    end
    if (moves && closes) begin
      m_axi_awaddr <= 64'({first_reg, 6'd0});
      m_axi_awlen  <= 8'(beats_reg) - 8'd1;
    end
    if (rst) begin
      held_reg      <= 1'b0;
      m_axi_awvalid <= 1'b0;
    end else begin
      if (take) held_reg <= 1'b1;
      else if (moves) held_reg <= 1'b0;
      if (moves && closes) m_axi_awvalid <= 1'b1;
      else if (m_axi_awready) m_axi_awvalid <= 1'b0;
    end
  end

  // A whole burst has room here, so that its address never waits for its beats.
  sync_fifo #(.WIDTH(513), .DEPTH(2 * BURST_BEATS), .RAM_STYLE("distributed")) beats (
      .clk, .rst, .s_data({closes, beat_reg}), .s_valid(moves), .s_ready(beat_ready),
      .m_data({m_axi_wlast, m_axi_wdata}), .m_valid(m_axi_wvalid), .m_ready(m_axi_wready), .level()
  );
  assign m_axi_wstrb = '1;

  // ---- answers ----------------------------------------------------------------------------------------------------
  logic [BeatBits-1:0] answered_beats;
  logic                answer_due, mark_waits, mark_room;
  count_t              taken_reg, answered_reg, wanted;

  sync_fifo #(.WIDTH(BeatBits), .DEPTH(Bursts), .RAM_STYLE("distributed")) lengths (
      .clk, .rst, .s_data(beats_reg), .s_valid(moves && closes), .s_ready(length_ready),
      .m_data(answered_beats), .m_valid(answer_due), .m_ready(m_axi_bvalid), .level()
  );
  assign m_axi_bready = answer_due;
  assign error = m_axi_bvalid && m_axi_bready && m_axi_bresp[1];

  sync_fifo #(.WIDTH(CountBits), .DEPTH(Marks), .RAM_STYLE("distributed")) marks (
      .clk, .rst, .s_data(taken_reg), .s_valid(mark), .s_ready(mark_room),
      .m_data(wanted), .m_valid(mark_waits), .m_ready(marked), .level()
  );
  wire count_t behind = answered_reg - wanted;
  assign marked = mark_waits && !behind[CountBits-1];

  always_ff @(posedge clk) begin
    if (rst) begin
      taken_reg    <= '0;
      answered_reg <= '0;
    end else begin
      if (take) taken_reg <= taken_reg + 1'b1;
      if (m_axi_bvalid && m_axi_bready) answered_reg <= answered_reg + count_t'(answered_beats);
    end
  end

`ifdef VERILATOR
  a_room_for_marks :
  assert property (@(posedge clk) disable iff (rst) mark |-> mark_room)
  else $error("%m: a mark came while %0d wait", Marks);
`else
  wire unused_room = &{1'b0, mark_room};
`endif
  wire unused = &{1'b0, m_axi_bresp[0]};

endmodule : entry_writer
