// A NIC's registers behind AXI4-Lite (rtl/registers.toml): settings, commands, status, counters, interrupts.
// A soft reset ends the streams and leaves the other settings.
`include "ports.svh"

module nic_registers
  import nic_pkg::*;
  import nic_regs_pkg::*;
  import transport_pkg::StatBits;
  import transport_pkg::StatIndexBits;
(
    input  logic                         clk,
    input  logic                         rst,
    // a soft reset is at work: the streams' enable bits fall
    input  logic                         core_rst,

    `AXIL_SLAVE_PORTS(s_axil, AddressBits),

    output nic_control_t                 control,
    // a command, in the clock after its write, and what was written
    output nic_strobe_t                  strobe,
    output logic [31:0]                  written,
    // the IRQ bits of `status` are not looked at
    input  nic_status_t                  status,
    // events for IRQ, as its bits
    input  logic [InterruptBits-1:0]     interrupt_set,
    output logic                         irq,
    // high for a clock: a read or write was answered with an error
    output logic                         refused,

    // counters: the values come two clocks after the index
    output logic [StatIndexBits-1:0]     stat_index,
    input  logic [StatBits-1:0]          stat_value,
    output logic [HostStatIndexBits-1:0] host_stat_index,
    input  logic [StatBits-1:0]          host_stat_value
);

  logic                   wr_en;
  logic [AddressBits-1:0] wr_addr;
  logic [31:0]            wr_data;
  logic [3:0]             wr_strb;
  logic                   rd_en;
  logic [AddressBits-1:0] rd_addr;
  logic [31:0]            rd_data;
  logic                   rd_error;
  logic                   wr_error;
  logic                   rd_reg;

  // The transport takes a stream's settings as they are while it runs.
  wire locked = nic_locked(wr_addr, control.control_tx_enable, control.control_rx_enable);

  assign wr_error = !nic_writable(wr_addr) || locked;
  assign refused  = (wr_en && wr_error) || (rd_reg && rd_error);

  axil_regs #(.ADDR_WIDTH(AddressBits)) slave (
      .clk,
      .rst,
      `AXIL_CONNECT(s_axil, s_axil),
      .wr_en,
      .wr_addr,
      .wr_data,
      .wr_strb,
      .wr_error,
      .rd_en,
      .rd_addr,
      .rd_data,
      .rd_error
  );

  // ---- settings and commands ------------------------------------------------------------------------------
  logic [InterruptBits-1:0] interrupt_reg;
  logic [InterruptBits-1:0] acknowledged;

  assign acknowledged = strobe.irq ? written[InterruptBits-1:0] : '0;

  always_ff @(posedge clk) begin
    written   <= wr_data;
    irq       <= |(interrupt_reg & control.irq_enable_mask);
    if (rst) begin
      control       <= NicControlReset;
      strobe        <= '0;
      interrupt_reg <= '0;
    end else begin
      if (wr_en && !locked) control <= nic_write(control, wr_addr, wr_data, wr_strb);
      if (core_rst) begin
        control.control_tx_enable <= 1'b0;
        control.control_rx_enable <= 1'b0;
      end
      strobe        <= wr_en && !locked ? nic_strobes(wr_addr, wr_strb) : '0;
      interrupt_reg <= (interrupt_reg & ~acknowledged) | interrupt_set;
    end
  end

  // ---- reads --------------------------------------------------------------------------------------------------
  // A counter's index is the address on the bus: with the register in the slave it would come a clock late.
  assign stat_index      = s_axil_araddr[3+:StatIndexBits];
  assign host_stat_index = s_axil_araddr[3+:HostStatIndexBits];

  logic [31:0]         register_reg;
  logic                readable_reg;
  logic [StatBits-1:0] counter;
  logic [31:0]         high_reg;  // the high word of the counter whose low word was read last
  nic_status_t         answers;

  wire counted = in_statistics(rd_addr) || in_host_statistics(rd_addr);

  assign counter = in_statistics(rd_addr) ? stat_value : host_stat_value;

  always_comb begin
    answers = status;
    {answers.irq_bus_error, answers.irq_unanswerable, answers.irq_missed, answers.irq_refused,
     answers.irq_pull_done, answers.irq_push_done} = interrupt_reg;
    rd_data = register_reg;
    if (counted) rd_data = rd_addr[2] ? high_reg : counter[31:0];
    rd_error = !readable_reg && !counted;
  end

  always_ff @(posedge clk) begin
    register_reg <= nic_read(control, answers, rd_addr);
    readable_reg <= nic_readable(rd_addr);
    if (rd_reg && counted && !rd_addr[2]) high_reg <= 32'(counter[StatBits-1:32]);
    rd_reg <= rd_en;
  end

endmodule : nic_registers
