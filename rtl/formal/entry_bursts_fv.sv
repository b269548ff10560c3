// Proves of entry_reader and entry_writer: a burst is not empty, not too long, and lies in one block of 4 KiB; entries are asked
// for in their order, each once; as many beats are written as the addresses say.
module entry_bursts_fv (
    input logic         clk,
    input logic         rst,
    input logic         read_valid,
    input logic [11:0]  read_address,
    input logic         m_read_arready,
    input logic         write_valid,
    input logic [11:0]  write_address,
    input logic         m_write_awready,
    input logic         m_write_wready,
    input logic         m_write_bvalid
);

  localparam int unsigned Beats = 4;

  logic [63:0]  m_read_araddr, m_write_awaddr, m_write_wstrb;
  logic [7:0]   m_read_arlen, m_write_awlen;
  logic         read_ready, write_ready, m_read_arvalid, m_read_rready, m_write_awvalid, m_write_wlast, m_write_wvalid;
  logic         m_write_bready, local_valid, marked, read_error, write_error;
  logic [511:0] local_data, m_write_wdata;

  entry_reader #(.ADDRESS_BITS(12), .BURST_BEATS(Beats)) reader (
      .clk, .rst, .s_valid(read_valid), .s_ready(read_ready), .s_address(read_address), .m_valid(local_valid),
      .m_data(local_data), .m_axi_araddr(m_read_araddr), .m_axi_arlen(m_read_arlen), .m_axi_arvalid(m_read_arvalid),
      .m_axi_arready(m_read_arready), .m_axi_rdata('0), .m_axi_rresp(2'd0), .m_axi_rlast(1'b0), .m_axi_rvalid(1'b0),
      .m_axi_rready(m_read_rready), .error(read_error)
  );
  entry_writer #(.ADDRESS_BITS(12), .BURST_BEATS(Beats)) writer (
      .clk, .rst, .s_valid(write_valid), .s_ready(write_ready), .s_address(write_address), .s_data('0), .mark(1'b0), .marked,
      .m_axi_awaddr(m_write_awaddr), .m_axi_awlen(m_write_awlen), .m_axi_awvalid(m_write_awvalid),
      .m_axi_awready(m_write_awready), .m_axi_wdata(m_write_wdata), .m_axi_wstrb(m_write_wstrb),
      .m_axi_wlast(m_write_wlast), .m_axi_wvalid(m_write_wvalid), .m_axi_wready(m_write_wready), .m_axi_bresp(2'd0),
      .m_axi_bvalid(m_write_bvalid), .m_axi_bready(m_write_bready), .error(write_error)
  );

  logic       past_reg = 1'b0;
  logic [7:0] asked_reg, issued_reg;            // entries asked for, and in bursts
  logic [7:0] given_reg, addressed_reg;         // the same of writes
  logic [7:0] since_reg;                        // beats of the burst that is put together, as the buffer of beats has them

  wire [7:0] read_pending = asked_reg - issued_reg;
  wire [7:0] write_pending = given_reg - addressed_reg;

  function automatic logic sound(input logic [63:0] address, input logic [7:0] length);
    return length < 8'(Beats) && 13'(address[11:0]) + (13'(length) + 13'd1) * 13'd64 <= 13'd4096 && address[5:0] == 6'd0;
  endfunction

  always_ff @(posedge clk) begin
    past_reg <= 1'b1;
    if (!past_reg) assume (rst);
    else assume (!rst);
    if (rst) begin
      asked_reg     <= '0;
      issued_reg    <= '0;
      given_reg     <= '0;
      addressed_reg <= '0;
      since_reg     <= '0;
    end else begin
      asked_reg     <= asked_reg + 8'(read_valid && read_ready);
      issued_reg    <= issued_reg + (m_read_arvalid && m_read_arready ? m_read_arlen + 8'd1 : 8'd0);
      given_reg     <= given_reg + 8'(write_valid && write_ready);
      addressed_reg <= addressed_reg + (m_write_awvalid && m_write_awready ? m_write_awlen + 8'd1 : 8'd0);
      since_reg     <= !writer.moves ? since_reg : writer.closes ? 8'd0 : since_reg + 8'd1;
    end
    if (past_reg && !rst) begin
      reads_sound : assert (!m_read_arvalid || sound(m_read_araddr, m_read_arlen));
      writes_sound : assert (!m_write_awvalid || sound(m_write_awaddr, m_write_awlen));
      reads_stay : assert (!$past(!rst && m_read_arvalid && !m_read_arready) || (m_read_arvalid && $stable(m_read_araddr) && $stable(m_read_arlen)));
      writes_stay : assert (!$past(!rst && m_write_awvalid && !m_write_awready) || (m_write_awvalid && $stable(m_write_awaddr) && $stable(m_write_awlen)));
      reads_counted : assert (read_pending == (m_read_arvalid ? m_read_arlen + 8'd1 : 8'd0) + (reader.held_reg ? 8'(reader.beats_reg) : 8'd0));
      writes_counted : assert (write_pending == (m_write_awvalid ? m_write_awlen + 8'd1 : 8'd0) + (writer.held_reg ? 8'(writer.beats_reg) : 8'd0));
      last_where_addressed : assert (since_reg == (writer.held_reg ? 8'(writer.beats_reg) - 8'd1 : 8'd0));
      // what makes it inductive
      if (reader.held_reg)
        read_burst : assert (reader.beats_reg != '0 && reader.beats_reg <= 3'(Beats) && reader.after_reg == reader.first_reg + 12'(reader.beats_reg)
                             && 7'(reader.first_reg[5:0]) + 7'(reader.beats_reg) <= 7'd64);
      if (writer.held_reg)
        write_burst : assert (writer.beats_reg != '0 && writer.beats_reg <= 3'(Beats) && writer.after_reg == writer.first_reg + 12'(writer.beats_reg)
                              && 7'(writer.first_reg[5:0]) + 7'(writer.beats_reg) <= 7'd64);
      longest_read : cover (m_read_arvalid && m_read_arready && m_read_arlen == 8'(Beats - 1));
      longest_write : cover (m_write_awvalid && m_write_awready && m_write_awlen == 8'(Beats - 1));
      at_the_end : cover (m_write_awvalid && m_write_awlen == 8'd1 && m_write_awaddr[11:6] == 6'd62);
    end
  end

endmodule : entry_bursts_fv
