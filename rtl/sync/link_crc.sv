// CRC-32C of WIDTH bits, the highest first, begun with ones: all bits at zero is no code word.  A register lies between the
// sums over slices and their sum, so the result is there a clock after the data.
module link_crc #(
    parameter int unsigned WIDTH = 576,
    parameter int unsigned SLICES = 8
) (
    input  logic             clk,
    // the register keeps its value while this is low
    input  logic             enable,
    input  logic [WIDTH-1:0] data,
    output logic [31:0]      crc
);

  localparam logic [31:0] Polynomial = 32'h1edc_6f41;
  localparam int unsigned SliceBits = (WIDTH + SLICES - 1) / SLICES;

  typedef logic [SliceBits-1:0] row_t;
  typedef logic [31:0][SliceBits-1:0] rows_t;

  function automatic logic [31:0] step(input logic [31:0] remainder);
    return {remainder[30:0], 1'b0} ^ (remainder[31] ? Polynomial : 32'd0);
  endfunction

  // Row r of a slice: the bits of the data that go into bit r of the CRC.  The slice's lowest bit is bit `from` of the data.
  function automatic rows_t rows(input int unsigned from);
    rows_t            all = '0;
    logic [31:0] remainder = 32'd1;
    for (int unsigned i = 0; i < 32 + from; i++) remainder = step(remainder);
    for (int unsigned i = 0; i < SliceBits; i++) begin
      for (int unsigned r = 0; r < 32; r++) all[r][i] = remainder[r];
      remainder = step(remainder);
    end
    return all;
  endfunction

  // What the ones at the beginning leave behind.
  function automatic logic [31:0] begun();
    logic [31:0] remainder = '1;
    for (int unsigned i = 0; i < WIDTH; i++) remainder = step(remainder);
    return remainder;
  endfunction

  localparam logic [31:0] Begun = begun();

  wire [SLICES*SliceBits-1:0] padded = (SLICES * SliceBits)'(data);
  logic [SLICES-1:0][31:0] sum_reg;

  for (genvar s = 0; s < SLICES; s++) begin : gen_slice
    localparam rows_t Rows = rows(s * SliceBits);
    wire row_t slice = padded[s*SliceBits+:SliceBits];
    logic [31:0] sum;
    for (genvar r = 0; r < 32; r++) begin : gen_row
      assign sum[r] = ^(slice & Rows[r]);
    end
    always_ff @(posedge clk) begin
      if (enable) sum_reg[s] <= sum;
    end
  end

  always_comb begin
    crc = Begun;
    for (int unsigned s = 0; s < SLICES; s++) crc ^= sum_reg[s];
  end

endmodule : link_crc
