// Four steps of a carry chain.  Each carry has a variable of its own: in Yosys' model one has all four and depends on itself, so that
// a simulator iterates over every adder.
module CARRY4 (
    output logic [3:0] CO,
    output logic [3:0] O,
    input  logic       CI,
    input  logic       CYINIT,
    input  logic [3:0] DI,
    input  logic [3:0] S
);

  wire first  = CI | CYINIT;
  wire second = S[0] ? first : DI[0];
  wire third  = S[1] ? second : DI[1];
  wire fourth = S[2] ? third : DI[2];

  assign O  = S ^ {fourth, third, second, first};
  assign CO = {S[3] ? fourth : DI[3], fourth, third, second};

endmodule : CARRY4
