// Holds the vectors that have arrived and are not handed over: the parser writes at any place, the host reads in order.
`include "ports.svh"

module rx_ring
  import transport_pkg::*;
#(
    parameter int unsigned VECTOR_BYTES = 256,
    // places of the ring, a power of two
    parameter int unsigned WINDOW = 1024,
    localparam int unsigned Beats     = VECTOR_BYTES / 64,
    localparam int unsigned PlaceBits = $clog2(WINDOW),
    localparam int unsigned IndexBits  = Beats > 1 ? $clog2(Beats) : 1
) (
    input  logic                 clk,
    input  logic                 rst,

    input  logic                 write,
    input  logic [PlaceBits-1:0] write_place,
    input  logic [IndexBits-1:0]  write_beat,
    input  logic [511:0]         write_data,
    input  logic                 meta_write,
    input  rx_meta_t             meta_data,

    // `ready`: the vector at `place` may be read; `pop`: the ring has read it
    input  logic                 ready,
    input  logic [PlaceBits-1:0] place,
    output logic                 pop,
    // no vector is under way to the host
    output logic                 idle,

    `AXIS_VECTOR_OUT_PORTS(m_axis, rx_meta_t)
);

  localparam int unsigned AddressBits = $clog2(WINDOW * Beats);

  // Both stages of the read move together, or wait for the host.
  wire move = m_axis_tready || !m_axis_tvalid;

  logic [IndexBits-1:0]  beat_reg;
  logic                 inside_reg;  // the vector at place_reg is under way
  logic [PlaceBits-1:0] place_reg;

  wire                  issue   = move && (inside_reg || ready);
  wire                  last    = beat_reg == IndexBits'(Beats - 1);
  wire [PlaceBits-1:0]  reading = inside_reg ? place_reg : place;

  assign pop  = issue && last;
  assign idle = !inside_reg;

  logic     array_valid_reg;
  logic     array_last_reg;
  logic     valid_reg;
  logic     last_reg;
  rx_meta_t meta;
  rx_meta_t meta_reg;

  assign m_axis_tvalid = valid_reg;
  assign m_axis_tlast  = last_reg;
  assign m_axis_tuser  = meta_reg;

  always_ff @(posedge clk) begin
    if (issue && !inside_reg) place_reg <= place;
    if (rst) begin
      beat_reg        <= '0;
      inside_reg      <= 1'b0;
      array_valid_reg <= 1'b0;
      valid_reg       <= 1'b0;
    end else begin
      if (issue) begin
        beat_reg   <= last ? '0 : beat_reg + 1'b1;
        inside_reg <= !last;
      end
      if (move) begin
        array_valid_reg <= issue;
        valid_reg       <= array_valid_reg;
      end
    end
    if (move) begin
      array_last_reg <= last;
      last_reg       <= array_last_reg;
      meta_reg       <= meta;
    end
  end

  logic [AddressBits-1:0] write_address;
  logic [AddressBits-1:0] read_address;
  if (Beats > 1) begin : gen_beats
    assign write_address = {write_place, write_beat};
    assign read_address  = {reading, beat_reg};
  end else begin : gen_beat
    wire unused = &{1'b0, write_beat};
    assign write_address = write_place;
    assign read_address  = reading;
  end

  vector_ram #(.WIDTH(512), .DEPTH(WINDOW * Beats)) vectors (
      .clk,
      .write,
      .write_address,
      .write_data,
      .read(move),
      .read_address,
      .read_data(m_axis_tdata)
  );

  meta_ram #(.WIDTH($bits(rx_meta_t)), .DEPTH(WINDOW)) metas (
      .clk,
      .write(meta_write),
      .write_address(write_place),
      .write_data(meta_data),
      .read(move),
      .read_address(reading),
      .read_data(meta)
  );

endmodule : rx_ring
