// Says whether the sender may send its next new vector, and if not, what is missing.  The sender never sends beyond the
// credit and never has more vectors in flight than the window.
module credit_gate
  import serial_pkg::*;
(
    // every receiver has all vectors below this sequence number
    input  seq_t        acked,
    // the first sequence number that has not been sent yet
    input  seq_t        next,
    // the first sequence number that the host has not written yet
    input  seq_t        end_seq,
    // the first sequence number that the slowest receiver has no room for
    input  seq_t        credit,
    // number of vectors that may be in flight
    input  logic [15:0] window,

    output logic        open,
    output logic        lacks_credit,
    output logic        lacks_window
);

  wire waiting = next != end_seq;
  wire granted = newer(credit, next);
  wire room    = next - acked < {16'd0, window};

  assign open         = waiting && granted && room;
  assign lacks_credit = waiting && !granted;
  assign lacks_window = waiting && granted && !room;

endmodule : credit_gate
