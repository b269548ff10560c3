// Bytes of a 512-bit beat: tkeep and counts, and the byte order of lanes.
package keep_pkg;
  import catchment_wire_pkg::BeatBits;

  localparam int unsigned BeatBytes = BeatBits / 8;

  typedef logic [BeatBytes-1:0] keep_t;
  // 0..64 bytes
  typedef logic [$clog2(BeatBytes):0] count_t;

  // The tkeep of a beat's first `count` bytes; all bytes are kept from 64 on.
  function automatic keep_t keep_of(count_t count);
    keep_t keep;
    for (int unsigned i = 0; i < BeatBytes; i++) keep[i] = count_t'(i) < count;
    return keep;
  endfunction

  // The number of bytes that a tkeep without a hole keeps.
  function automatic count_t count_of(keep_t keep);
    count_t count;
    count = '0;
    for (int unsigned i = 0; i < BeatBytes; i++) begin
      // one bit is set: where the kept bytes end
      if (keep[i] && (i == BeatBytes - 1 || !keep[(i+1)%BeatBytes])) count = count | count_t'(i + 1);
    end
    return count;
  endfunction

  // Whether a tkeep has no hole: the kept bytes come first.
  function automatic logic is_prefix(keep_t keep);
    return (keep & (keep + 1'b1)) == '0;
  endfunction

  // The number of beats that `bytes` bytes fill, the last one perhaps in part.
  function automatic logic [31:0] beats_of(logic [31:0] bytes);
    return (bytes + 32'(BeatBytes - 1)) / 32'(BeatBytes);
  endfunction

  // Turns each lane from the frame's byte order (big-endian) to the converters' (little-endian), or back.
  function automatic logic [BeatBits-1:0] swap_lanes(logic [BeatBits-1:0] data);
    logic [BeatBits-1:0] swapped;
    for (int unsigned i = 0; i < BeatBytes; i++) swapped[8*i+:8] = data[8*(i^3)+:8];
    return swapped;
  endfunction

endpackage : keep_pkg
