// Holds the vectors [ma, end): the host writes them in order, the frame sender reads them at any place.
`include "ports.svh"

module tx_ring
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
    // low: beats are dropped, and after it has risen up to the end of the vector that was under way
    input  logic                 run,

    `AXIS_VECTOR_IN_PORTS(s_axis, tx_meta_t),

    // the place of the next vector from the host
    input  logic [PlaceBits-1:0] place,
    input  logic                 full,
    // that vector has been written
    output logic                 put,

    input  logic                 meta_read,
    input  logic [PlaceBits-1:0] meta_place,
    output tx_meta_t             meta,       // a clock after meta_read

    input  logic                 data_read,
    input  logic [PlaceBits-1:0] data_place,
    input  logic [IndexBits-1:0]  data_beat,
    output logic [511:0]         data        // two reads later
);

  localparam int unsigned AddressBits = $clog2(WINDOW * Beats);

  logic                inside_reg;   // a vector is under way
  logic                discard_reg;  // that vector is dropped
  logic [IndexBits-1:0] beat_reg;
  logic                sat_reg;      // the OR of `sat` over the vector's beats so far

  wire discard = !run || discard_reg;
  wire take    = s_axis_tvalid && s_axis_tready;
  wire store   = take && !discard;

  assign s_axis_tready = discard || !full;
  assign put           = store && s_axis_tlast;

  tx_meta_t stored;
  always_comb begin
    stored     = s_axis_tuser;
    stored.sat = s_axis_tuser.sat || sat_reg;
    // No number of bytes that the frame sender would not come to the end of.
    if (s_axis_tuser.bytes - 16'd1 >= 16'(VECTOR_BYTES)) stored.bytes = 16'(VECTOR_BYTES);
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      inside_reg  <= 1'b0;
      discard_reg <= 1'b1;
    end else begin
      if (take) inside_reg <= !s_axis_tlast;
      if (!run) discard_reg <= 1'b1;
      else if (take ? s_axis_tlast : !inside_reg) discard_reg <= 1'b0;
    end
    if (discard || put) begin
      beat_reg <= '0;
      sat_reg  <= 1'b0;
    end else if (store) begin
      beat_reg <= beat_reg + 1'b1;
      sat_reg  <= stored.sat;
    end
  end

  logic [AddressBits-1:0] write_address;
  logic [AddressBits-1:0] read_address;
  if (Beats > 1) begin : gen_beats
    assign write_address = {place, beat_reg};
    assign read_address  = {data_place, data_beat};
  end else begin : gen_beat
    wire unused = &{1'b0, beat_reg, data_beat};
    assign write_address = place;
    assign read_address  = data_place;
  end

  vector_ram #(.WIDTH(512), .DEPTH(WINDOW * Beats)) vectors (
      .clk,
      .write(store),
      .write_address,
      .write_data(s_axis_tdata),
      .read(data_read),
      .read_address,
      .read_data(data)
  );

  meta_ram #(.WIDTH($bits(tx_meta_t)), .DEPTH(WINDOW)) metas (
      .clk,
      .write(put),
      .write_address(place),
      .write_data(stored),
      .read(meta_read),
      .read_address(meta_place),
      .read_data(meta)
  );

`ifndef SYNTHESIS
  always_ff @(posedge clk) begin
    if (!rst && store) begin
      assert (s_axis_tlast == (beat_reg == IndexBits'(Beats - 1)))
      else $error("tx_ring: tlast is not on beat %0d of a vector", Beats - 1);
    end
  end
`endif

endmodule : tx_ring
