// Hashes one frame's message after another: fetches it row by row, eight words each, and gives the words to `sip_hash`, at last the
// one that says how many bytes it has.
module tag_unit
  import tag_pkg::*;
#(
    // bits of a row's address
    parameter int unsigned ADDRESS_BITS = 10
) (
    input  logic                    clk,
    input  logic                    rst,

    input  logic [127:0]            tx_key,
    input  logic [127:0]            rx_key,

    // a message: its first row, number of rows, words in the last of them, and bytes modulo 256
    input  logic                    start,
    input  logic [ADDRESS_BITS-1:0] start_row,
    input  logic [7:0]              start_rows,
    input  logic [3:0]              start_rest,
    input  logic [7:0]              start_bytes,
    input  logic                    start_of_rx,
    output logic                    idle,

    // the row that is wanted next; if it is granted in this clock, its data are there three clocks later
    output logic [ADDRESS_BITS-1:0] row,
    input  logic                    grant,
    input  logic [511:0]            data,

    // the hash stays until it is taken
    output logic                    done,
    output logic [TagBits-1:0]      hash,
    input  logic                    taken
);

  logic                    busy_reg;
  logic                    closed_reg;  // the last word was given
  logic [ADDRESS_BITS-1:0] row_reg;
  logic [7:0]              rows_reg;    // to be fetched
  logic [3:0]              rest_reg;
  logic [7:0]              bytes_reg;
  logic                    of_rx_reg;
  logic [2:0]              coming_reg;
  logic [511:0]            data_reg;
  logic [3:0]              left_reg;    // words of data_reg that were not given
  logic [2:0]              index_reg;   // of the next one

  logic [63:0]             word;
  logic                    word_ready;

  wire last       = left_reg == 4'd0;
  wire word_valid = busy_reg && !closed_reg && (!last || (rows_reg == 8'd0 && coming_reg == 3'd0));
  wire give       = word_valid && word_ready;
  wire capture    = coming_reg[2];

  // The two words that may be left are gone when the row is here: a word waits two clocks at most.
  wire ask = grant && busy_reg && rows_reg != 8'd0 && left_reg <= 4'd2 && coming_reg == 3'd0;
  assign row  = row_reg;
  assign idle = !busy_reg;

  // Words are in network byte order.
  wire [63:0] picked = data_reg[64*index_reg+:64];
  always_comb begin
    for (int unsigned i = 0; i < 8; i++) word[8*i+:8] = last ? (i == 7 ? bytes_reg : 8'd0) : picked[8*(7-i)+:8];
  end

  always_ff @(posedge clk) begin
    if (start) begin
      row_reg   <= start_row;
      rows_reg  <= start_rows;
      rest_reg  <= start_rest;
      bytes_reg <= start_bytes;
      of_rx_reg <= start_of_rx;
    end else if (ask) begin
      row_reg  <= row_reg + 1'b1;
      rows_reg <= rows_reg - 8'd1;
    end
    if (capture) data_reg <= data;
    index_reg <= capture ? 3'd0 : index_reg + 3'(give);
    if (rst) begin
      busy_reg   <= 1'b0;
      closed_reg <= 1'b0;
      coming_reg <= '0;
      left_reg   <= '0;
    end else begin
      if (start) busy_reg <= 1'b1;
      else if (done && taken) busy_reg <= 1'b0;
      closed_reg <= busy_reg && (closed_reg || (give && last));
      coming_reg <= {coming_reg[1:0], ask};
      if (capture) left_reg <= rows_reg == 8'd0 ? rest_reg : 4'd8;
      else if (give && !last) left_reg <= left_reg - 4'd1;
    end
  end

  sip_hash hasher (
      .clk,
      .rst,
      .key(of_rx_reg ? rx_key : tx_key),
      .s_word(word),
      .s_last(last),
      .s_valid(word_valid),
      .s_ready(word_ready),
      .m_hash(hash),
      .m_valid(done),
      .m_ready(taken)
  );

`ifdef VERILATOR
  row_before_its_turn :
  assert property (@(posedge clk) disable iff (rst) capture |-> last || (left_reg == 4'd1 && give))
  else $error("%m: a row came over words that were not given");
`endif

endmodule : tag_unit
