// What a block RAM of UltraScale+ does with both ports on one clock: 512 rows, each of two ports' widest words and their
// parity.  Where the hardware promises nothing, a read finds bits at random, and so does whoever reads first.
module block_ram #(
    // data bits of a port's widest word
    parameter int HALF = 32,
    // widths of the ports with parity: 1, 2, 4, 9, 18, ... up to a row for A's reads and B's writes; 0: unused
    parameter int READ_A = 0, READ_B = 0, WRITE_A = 0, WRITE_B = 0,
    parameter MODE_A = "NO_CHANGE", MODE_B = "NO_CHANGE",
    // the outputs at first and when reset: the parity stands above the data of that width, a row's upper half in B's
    parameter logic [HALF*9/8-1:0] INIT_A = '0, INIT_B = '0, SRVAL_A = '0, SRVAL_B = '0,
    localparam int Row = 2 * HALF, Bytes = Row / 8, AddressBits = 9 + $clog2(Row)
) (
    input  logic                   clk,
    input  logic                   en_a, en_b, rst_a, rst_b,
    input  logic [Bytes-1:0]       we_a, we_b,
    input  logic [AddressBits-1:0] addr_a, addr_b,
    input  logic [Row-1:0]         din_a, din_b,
    input  logic [Bytes-1:0]       dinp_a, dinp_b,
    output logic [Row-1:0]         dout_a, dout_b,
    output logic [Bytes-1:0]       doutp_a, doutp_b
);

  typedef struct packed {
    logic [Bytes-1:0] parity;
    logic [Row-1:0]   data;
  } row_t;

  localparam int OffsetBits = $clog2(Row);

  function automatic int data_bits(int width);
    return width < 9 ? width : width / 9 * 8;
  endfunction

  function automatic bit known(int width, int most);
    return width inside {0, 1, 2, 4, 9, 18, 36, 72} && width <= most;
  endfunction

  localparam int Port = HALF * 9 / 8;
  localparam bit Wide = READ_A > Port || WRITE_B > Port;
  if (!known(READ_A, 2 * Port) || !known(WRITE_B, 2 * Port) || !known(READ_B, Port) || !known(WRITE_A, Port)) begin : gen_width
    $fatal(1, "block_ram: no port has such a width");
  end
  if (Wide && (READ_B != 0 || WRITE_A != 0)) begin : gen_wide
    $fatal(1, "block_ram: a row wide, port A only reads and port B only writes");
  end
  if (!(MODE_A inside {"NO_CHANGE", "READ_FIRST", "WRITE_FIRST"}) ||
      !(MODE_B inside {"NO_CHANGE", "READ_FIRST", "WRITE_FIRST"})) begin : gen_mode
    $fatal(1, "block_ram: no such WRITE_MODE");
  end
  if ((MODE_A == "WRITE_FIRST" && READ_A != 0 && WRITE_A != 0 && READ_A != WRITE_A) ||
      (MODE_B == "WRITE_FIRST" && READ_B != 0 && WRITE_B != 0 && READ_B != WRITE_B)) begin : gen_write_first
    $fatal(1, "block_ram: what is written first is read in the same width only");
  end

  // The first bit of the word at an address.
  function automatic logic [OffsetBits-1:0] first(logic [AddressBits-1:0] addr, int width);
    return addr[OffsetBits-1:0] & ~OffsetBits'(data_bits(width) - 1);
  endfunction

  // The bits of a row that a word of this width has there; `we`: of its bytes those.
  function automatic row_t bits_of(logic [AddressBits-1:0] addr, int width, logic [Bytes-1:0] we);
    row_t bits = '0;
    if (width < 9) bits.data = we[0] ? Row'((1 << width) - 1) : '0;
    else
      for (int i = 0; i < width / 9; i++) begin
        bits.data[8*i+:8] = {8{we[i]}};
        bits.parity[i] = we[i];
      end
    return placed(bits, first(addr, width));
  endfunction

  function automatic row_t placed(row_t word, logic [OffsetBits-1:0] at);
    return '{parity: word.parity << (at / 8), data: word.data << at};
  endfunction

  function automatic row_t word_of(row_t row, logic [AddressBits-1:0] addr, int width);
    logic [OffsetBits-1:0] at = first(addr, width);
    return '{parity: row.parity >> (at / 8), data: row.data >> at};
  endfunction

  function automatic row_t value_of(int width, logic [Port-1:0] low, logic [Port-1:0] high);
    if (width <= Port) return '{parity: Bytes'(low >> data_bits(width)), data: Row'(low)};
    return '{parity: {high[Port-1-:HALF/8], low[Port-1-:HALF/8]}, data: {high[HALF-1:0], low[HALF-1:0]}};
  endfunction

  function automatic row_t any_bits();
    row_t bits;
    for (int i = 0; i < $bits(row_t); i += 8) bits = row_t'({bits, 8'($urandom)});
    return bits;
  endfunction

  row_t rows[512];
  row_t out_a = value_of(READ_A, INIT_A, INIT_B), out_b = value_of(READ_B, INIT_B, '0);
  initial foreach (rows[i]) rows[i] = any_bits();

  assign {doutp_a, dout_a} = out_a;
  assign {doutp_b, dout_b} = out_b;

  row_t old_a, old_b, set_a, set_b, seen_a, seen_b, both;
  logic [8:0] row_a, row_b;
  logic writes_a, writes_b;

  always @(posedge clk) begin
    row_a = addr_a[AddressBits-1-:9];
    row_b = addr_b[AddressBits-1-:9];
    writes_a = WRITE_A != 0 && en_a && |we_a;
    writes_b = WRITE_B != 0 && en_b && |we_b;
    set_a = writes_a ? bits_of(addr_a, WRITE_A, we_a) : '0;
    set_b = writes_b ? bits_of(addr_b, WRITE_B, we_b) : '0;
    // What each port finds of the row that it reads, were it alone.
    old_a = rows[row_a];
    old_b = rows[row_b];
    if (writes_a) begin
      rows[row_a] = (old_a & ~set_a) | (placed('{parity: dinp_a, data: din_a}, first(addr_a, WRITE_A)) & set_a);
    end
    if (writes_b) begin
      rows[row_b] = (rows[row_b] & ~set_b) | (placed('{parity: dinp_b, data: din_b}, first(addr_b, WRITE_B)) & set_b);
    end
    both = row_a == row_b ? set_a & set_b : '0;
    if (both != '0) rows[row_a] ^= any_bits() & both;
    seen_a = writes_a && MODE_A == "WRITE_FIRST" ? rows[row_a] : old_a;
    seen_b = writes_b && MODE_B == "WRITE_FIRST" ? rows[row_b] : old_b;
    // The other port's write in this clock can be read around only if it reads first.
    if (row_a == row_b && MODE_B != "READ_FIRST") seen_a ^= any_bits() & set_b;
    if (row_a == row_b && MODE_A != "READ_FIRST") seen_b ^= any_bits() & set_a;
    if (READ_A != 0 && en_a) begin
      if (rst_a) out_a <= value_of(READ_A, SRVAL_A, SRVAL_B);
      else if (!writes_a || MODE_A != "NO_CHANGE") out_a <= word_of(seen_a, addr_a, READ_A);
    end
    if (READ_B != 0 && en_b) begin
      if (rst_b) out_b <= value_of(READ_B, SRVAL_B, '0);
      else if (!writes_b || MODE_B != "NO_CHANGE") out_b <= word_of(seen_b, addr_b, READ_B);
    end
  end

endmodule : block_ram
