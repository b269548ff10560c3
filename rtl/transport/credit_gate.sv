// May the sender send its next new vector, and if not, what is missing?  Never beyond the credit, never more in flight
// than the window.
module credit_gate
  import serial_pkg::*;
(
    // everyone has all below
    input  seq_t        acked,
    // first not sent yet
    input  seq_t        next,
    // first not there yet
    input  seq_t        end_seq,
    // first not acceptable to the slowest receiver
    input  seq_t        credit,
    // vectors that may be in flight
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
