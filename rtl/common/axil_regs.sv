// An AXI4-Lite slave as strobes: one clock of `wr_en` for a write, one of `rd_en` for a read.
// A write: address, data and byte strobes are there with `wr_en`, and so must be `wr_error` (combinational).
// A read: `rd_addr` stays until the answer; `rd_data` and `rd_error` are taken in the clock after `rd_en`, so that they
// may be a register's or combinational.  An error is answered with SLVERR, everything else with OKAY.
// One write and one read are under way at a time, each independent of the other.  The two low address bits are ignored.
`include "ports.svh"

module axil_regs #(
    // bits of a register's byte address
    parameter int unsigned ADDR_WIDTH = 12
) (
    input  logic                  clk,
    input  logic                  rst,

    `AXIL_SLAVE_PORTS(s_axil, ADDR_WIDTH),

    output logic                  wr_en,
    // a multiple of four
    output logic [ADDR_WIDTH-1:0] wr_addr,
    // zero in the bytes that are not selected
    output logic [31:0]           wr_data,
    output logic [3:0]            wr_strb,
    input  logic                  wr_error,

    output logic                  rd_en,
    // a multiple of four
    output logic [ADDR_WIDTH-1:0] rd_addr,
    input  logic [31:0]           rd_data,
    input  logic                  rd_error
);

  if (ADDR_WIDTH < 3) begin : gen_bad_width
    $fatal(1, "axil_regs: ADDR_WIDTH must be at least 3");
  end

  localparam logic [1:0] Okay = 2'b00;
  localparam logic [1:0] SlaveError = 2'b10;

  wire unused = &{1'b0, s_axil_awprot, s_axil_arprot, s_axil_awaddr[1:0], s_axil_araddr[1:0]};

  // ---- write: address and data come in any order ----------------------------------------------------------
  logic                  has_address_reg;
  logic                  has_data_reg;
  logic [ADDR_WIDTH-3:0] write_word_reg;

  assign s_axil_awready = !has_address_reg;
  assign s_axil_wready  = !has_data_reg;
  assign wr_en          = has_address_reg && has_data_reg && !s_axil_bvalid;
  assign wr_addr        = {write_word_reg, 2'b00};

  always_ff @(posedge clk) begin
    if (s_axil_awvalid && s_axil_awready) write_word_reg <= s_axil_awaddr[ADDR_WIDTH-1:2];
    if (s_axil_wvalid && s_axil_wready) begin
      for (int unsigned i = 0; i < 4; i++) wr_data[8*i+:8] <= s_axil_wdata[8*i+:8] & {8{s_axil_wstrb[i]}};
      wr_strb <= s_axil_wstrb;
    end
    if (wr_en) s_axil_bresp <= wr_error ? SlaveError : Okay;
    if (rst) begin
      has_address_reg <= 1'b0;
      has_data_reg    <= 1'b0;
      s_axil_bvalid   <= 1'b0;
    end else begin
      if (s_axil_awvalid && s_axil_awready) has_address_reg <= 1'b1;
      else if (wr_en) has_address_reg <= 1'b0;
      if (s_axil_wvalid && s_axil_wready) has_data_reg <= 1'b1;
      else if (wr_en) has_data_reg <= 1'b0;
      if (wr_en) s_axil_bvalid <= 1'b1;
      else if (s_axil_bready) s_axil_bvalid <= 1'b0;
    end
  end

  // ---- read: strobe, take, answer -------------------------------------------------------------------------
  logic                  asked_reg;    // rd_en is up
  logic                  waiting_reg;  // the answer is there in this clock
  logic [ADDR_WIDTH-3:0] read_word_reg;

  assign s_axil_arready = !asked_reg && !waiting_reg && !s_axil_rvalid;
  assign rd_en          = asked_reg;
  assign rd_addr        = {read_word_reg, 2'b00};

  always_ff @(posedge clk) begin
    if (s_axil_arvalid && s_axil_arready) read_word_reg <= s_axil_araddr[ADDR_WIDTH-1:2];
    if (waiting_reg) begin
      s_axil_rdata <= rd_error ? 32'd0 : rd_data;
      s_axil_rresp <= rd_error ? SlaveError : Okay;
    end
    if (rst) begin
      asked_reg     <= 1'b0;
      waiting_reg   <= 1'b0;
      s_axil_rvalid <= 1'b0;
    end else begin
      asked_reg   <= s_axil_arvalid && s_axil_arready;
      waiting_reg <= asked_reg;
      if (waiting_reg) s_axil_rvalid <= 1'b1;
      else if (s_axil_rready) s_axil_rvalid <= 1'b0;
    end
  end

  stream_check #(.WIDTH(2)) check_b (
      .clk, .rst, .data(s_axil_bresp), .valid(s_axil_bvalid), .ready(s_axil_bready)
  );
  stream_check #(.WIDTH(34)) check_r (
      .clk, .rst, .data({s_axil_rdata, s_axil_rresp}), .valid(s_axil_rvalid), .ready(s_axil_rready)
  );
  stream_check #(.WIDTH(ADDR_WIDTH)) check_aw (
      .clk, .rst, .data(s_axil_awaddr), .valid(s_axil_awvalid), .ready(s_axil_awready)
  );
  stream_check #(.WIDTH(36)) check_w (
      .clk, .rst, .data({s_axil_wdata, s_axil_wstrb}), .valid(s_axil_wvalid), .ready(s_axil_wready)
  );
  stream_check #(.WIDTH(ADDR_WIDTH)) check_ar (
      .clk, .rst, .data(s_axil_araddr), .valid(s_axil_arvalid), .ready(s_axil_arready)
  );

endmodule : axil_regs
