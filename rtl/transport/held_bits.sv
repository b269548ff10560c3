// Remembers which places of a ring hold a frame that is not handed over yet; the window never exceeds the ring.
// A place keeps the lap (the bit above the place) of the last sequence number written to it: a number inside the window
// is held exactly if its place says its own lap.  So nothing is cleared as the window moves on; only before a stream
// begins does each place get the lap that the first window does not have, in WINDOW clocks.
module held_bits
  import serial_pkg::*;
#(
    // places of the ring, a power of two
    parameter int unsigned WINDOW = 1024
) (
    input  logic clk,
    input  logic rst,
    // rises: get ready for a stream that begins at `base`; falls: forget
    input  logic prepare,
    input  seq_t base,
    output logic ready,

    input  logic hold,
    input  seq_t hold_seq,

    // three sequence numbers can be looked up at a time
    input  seq_t seq_a,
    output logic held_a,
    input  seq_t seq_b,
    output logic held_b,
    input  seq_t seq_c,
    output logic held_c
);

  localparam int unsigned PlaceBits = $clog2(WINDOW);

  (* ram_style = "distributed" *) logic lap_mem[WINDOW];

  logic [PlaceBits-1:0] sweep_reg;
  logic                 ready_reg;

  assign ready  = ready_reg;
  assign held_a = lap_mem[seq_a[PlaceBits-1:0]] == seq_a[PlaceBits];
  assign held_b = lap_mem[seq_b[PlaceBits-1:0]] == seq_b[PlaceBits];
  assign held_c = lap_mem[seq_c[PlaceBits-1:0]] == seq_c[PlaceBits];

  // The lap of the first number from base on that belongs to the place being swept.
  wire first_lap = base[PlaceBits] ^ (sweep_reg < base[PlaceBits-1:0]);

  wire                 write = hold || !ready_reg;
  wire [PlaceBits-1:0] place = ready_reg ? hold_seq[PlaceBits-1:0] : sweep_reg;
  wire                 lap   = ready_reg ? hold_seq[PlaceBits] : !first_lap;

  always_ff @(posedge clk) begin
    if (write) lap_mem[place] <= lap;
    if (rst || !prepare) begin
      sweep_reg <= '0;
      ready_reg <= 1'b0;
    end else if (!ready_reg) begin
      sweep_reg <= sweep_reg + 1'b1;
      ready_reg <= sweep_reg == PlaceBits'(WINDOW - 1);
    end
  end

  wire unused = &{1'b0, hold_seq, seq_a, seq_b, seq_c, base};

endmodule : held_bits
