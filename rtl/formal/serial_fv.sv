// Proves of the serial arithmetic of serial_pkg, for every pair of sequence numbers and so across the wrap: order is by
// distance, does not depend on where the numbers lie, and is never both ways.
module serial_fv
  import serial_pkg::*;
(
    input logic clk,
    input seq_t a,
    input seq_t b,
    input seq_t shift,
    input seq_t ahead,
    input seq_t span
);

  always_ff @(posedge clk) begin
    not_itself : assert (!newer(a, a));
    ahead_is_newer : assert (newer(a + ahead, a) == (ahead >= 32'd1 && ahead <= 32'h7fff_ffff));
    one_way : assert (!(newer(a, b) && newer(b, a)));
    one_of_them : assert (newer(a, b) || newer(b, a) || a == b || a - b == 32'h8000_0000);
    anywhere : assert (newer(a + shift, b + shift) == newer(a, b));
    maximum : assert (later(a, b) == a || later(a, b) == b);
    no_step_back : assert (!newer(b, later(a, b)) && (!newer(a, later(a, b)) || a - b == 32'h8000_0000));
    minimum : assert (!newer(earlier(a, b), b) && (earlier(a, b) == a || earlier(a, b) == b));
    in_span : assert (between(a + ahead, a, a + span) == (ahead < span));
    chains : assert (!(ahead < 32'h4000_0000 && span < 32'h4000_0000 && ahead != 0 && span != 0)
                     || newer(a + ahead + span, a));
    wraps : cover (newer(a, b) && a < b);
    plain : cover (newer(a, b) && a > b);
    far : cover (ahead == 32'h7fff_ffff && newer(a + ahead, a) && a + ahead < a);
  end

endmodule : serial_fv
