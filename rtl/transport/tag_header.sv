// Looks at a frame's first beat for its stream's key, and turns the beat into that of the frame with a tag, or into that of the one
// without: version, lengths and the checksum over the length.
module tag_header
  import catchment_wire_pkg::*;
  import tag_pkg::*;
#(
    // 1: a frame that arrived loses its tag; 0: one that leaves gets it
    parameter bit OPENS = 1'b0
) (
    input  logic [15:0]  tx_gen,
    input  logic [15:0]  rx_gen,
    input  logic         tx_on,
    input  logic         rx_on,

    // a frame's first beat, byte 0 in the low bits
    input  logic [511:0] beat,

    // its stream has a key, and which of the two
    output logic         keyed,
    output logic         of_rx,
    // its version is that of frames with a tag
    output logic         versioned,
    // bytes behind our header, by UDP, without the tag; negative where not even the headers have room
    output logic [16:0]  payload,
    output logic [511:0] changed
);

  localparam logic [15:0] Change = OPENS ? -16'(TagBytes) : 16'(TagBytes);
  // The same of a one's complement sum.
  localparam logic [15:0] ChangeOfSum = OPENS ? ~16'(TagBytes) : 16'(TagBytes);
  localparam logic [16:0] Around = 17'(UdpBytes) + 17'(HeaderBytes) + (OPENS ? 17'(TagBytes) : 17'd0);

  // Two bytes in network byte order.
  function automatic logic [15:0] swapped(logic [15:0] bytes);
    return {bytes[7:0], bytes[15:8]};
  endfunction

  wire [15:0] ip_length  = swapped(beat[8*16+:16]);
  wire [15:0] checksum   = swapped(beat[8*24+:16]);
  wire [15:0] udp_length = swapped(beat[8*38+:16]);
  wire [15:0] gen        = swapped(beat[8*44+:16]);
  wire [16:0] sum        = {1'b0, ~checksum} + {1'b0, ChangeOfSum};
  wire        is_tx      = tx_on && gen == tx_gen;
  wire        is_rx      = rx_on && gen == rx_gen;

  assign keyed     = is_tx || is_rx;
  assign of_rx     = !is_tx;
  assign versioned = beat[8*42+4+:4] == 4'(TaggedVersion);
  assign payload   = {1'b0, udp_length} - Around;

  always_comb begin
    changed              = beat;
    changed[8*16+:16]    = swapped(ip_length + Change);
    changed[8*24+:16]    = swapped(~(sum[15:0] + 16'(sum[16])));
    changed[8*38+:16]    = swapped(udp_length + Change);
    changed[8*42+4+:4]   = OPENS ? 4'(Version) : 4'(TaggedVersion);
  end

endmodule : tag_header
