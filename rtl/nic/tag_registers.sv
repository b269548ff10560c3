// The keys of a NIC's streams, which its registers write and nothing reads, and the number of frames that were lost over their tags.
module tag_registers
  import nic_regs_pkg::*;
  import tag_pkg::*;
(
    input  logic        clk,
    input  logic        rst,

    // a command, and what was written
    input  nic_strobe_t strobe,
    input  logic [31:0] written,

    output tag_keys_t   keys,

    input  logic        lost,
    output logic [31:0] lost_count
);

  always_ff @(posedge clk) begin
    // four words, of which the first ends lowest
    if (strobe.tx_key) keys.tx.key <= {written, keys.tx.key[127:32]};
    if (strobe.rx_key) keys.rx.key <= {written, keys.rx.key[127:32]};
    if (strobe.tags) {keys.rx.on, keys.tx.on} <= written[1:0];
    if (lost) lost_count <= lost_count + 32'd1;
    if (rst) begin
      keys       <= '0;
      lost_count <= '0;
    end
  end

  wire unused = &{1'b0, strobe};

endmodule : tag_registers
