// Tags of frames (docs/explanation/tags.md): what is set, and what is known of a frame that waits for its tag.
package tag_pkg;

  localparam int unsigned TagBits = 64;
  localparam int unsigned TagBytes = TagBits / 8;
  // More would not get a row each: a unit takes a row of eight words in sixteen clocks.
  localparam int unsigned MostTagUnits = 16;

  // Of one stream.
  typedef struct packed {
    logic         on;   // its frames end with a tag
    logic [127:0] key;  // first byte lowest
  } tag_key_t;

  typedef struct packed {
    tag_key_t tx;
    tag_key_t rx;
  } tag_keys_t;

  // Of one frame.
  typedef struct packed {
    logic               hashed;   // a unit makes its tag
    logic               of_rx;    // under the key of the stream that is received
    logic               extra;    // one beat more comes out than went in
    logic [15:0]        payload;  // bytes behind our header that are under the tag
    // of a frame that arrived
    logic [TagBits-1:0] tag;      // as it came, its first byte highest
    logic               forged;   // it has a stream with a key, and cannot be right whatever its tag is
    logic               damaged;  // says the MAC
  } tagged_frame_t;

  // How far a beat's first byte is from the tag's, as far as it matters: from one beat before the tag to one behind it.
  function automatic logic signed [7:0] near(logic signed [17:0] rest);
    if (rest[17]) return &rest[16:6] ? 8'(rest) : -8'sd64;
    return |rest[16:6] ? 8'sd64 : 8'(rest);
  endfunction

endpackage : tag_pkg
