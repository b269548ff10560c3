// Serial arithmetic on 32-bit sequence numbers (docs/explanation/protocol.md, "Switch").
package serial_pkg;

  typedef logic [31:0] seq_t;

  // a lies 1 .. 2^31 - 1 ahead of b.
  function automatic logic newer(seq_t a, seq_t b);
    seq_t ahead;
    ahead = a - b;
    return ahead != 32'd0 && !ahead[31];
  endfunction

  function automatic seq_t later(seq_t a, seq_t b);
    return newer(a, b) ? a : b;
  endfunction

  function automatic seq_t earlier(seq_t a, seq_t b);
    return newer(b, a) ? a : b;
  endfunction

  // seq is one of first .. last - 1.
  function automatic logic between(seq_t seq, seq_t first, seq_t last);
    return seq - first < last - first;
  endfunction

endpackage : serial_pkg
