// Where the tag's bytes are in a beat behind the header: the payload's bytes come first, the tag's eight follow them.
module tag_bytes
  import keep_pkg::*;
  import tag_pkg::*;
(
    // from the beat's first byte to the tag's, -64 .. 64: 64 is beyond the beat, below zero is before it
    input  logic signed [7:0] at,

    // the payload's bytes, and with those of the tag
    output keep_t             payload,
    output keep_t             all
);

  wire signed [7:0] behind = at + 8'(TagBytes);

  // -64 .. 72 bytes
  function automatic keep_t kept(logic signed [7:0] count);
    return keep_of(count[7] ? '0 : count[6] ? count_t'(BeatBytes) : count_t'(count));
  endfunction

  assign payload = kept(at);
  assign all     = kept(behind);

endmodule : tag_bytes
