// Registers of P4SGD's worker behind AXI4-Lite (rtl/glm_registers.toml): settings, commands, status, interrupt.
`include "ports.svh"

module glm_registers
  import glm_regs_pkg::*;
(
    input  logic                   clk,
    input  logic                   rst,

    `AXIL_SLAVE_PORTS(s_axil, AddressBits),

    output glm_control_t           control,
    // a command, in the clock after its write, and what was written
    output glm_strobe_t            strobe,
    output logic [31:0]            written,
    // what is kept here is not looked at: STATE.busy is, but IRQ, FAULTS and REGISTER_ERRORS are not
    input  glm_status_t            status,
    // from the clock after the command to its end
    input  logic                   stopping,
    // why a training cannot begin
    input  logic [8:0]             faults,
    // a training begins
    output logic                   start,
    output logic                   irq
);

  logic                   wr_en;
  logic [AddressBits-1:0] wr_addr;
  logic [31:0]            wr_data;
  logic [3:0]             wr_strb;
  logic                   wr_error;
  logic                   rd_en;
  logic [AddressBits-1:0] rd_addr;
  logic [31:0]            rd_data;
  logic                   rd_error;

  // A start is on its way to STATE.busy for three clocks.
  logic [2:0]  starting_reg;
  logic        locked;
  logic        busy_reg;
  logic        training_reg;
  logic [8:0]  faults_reg;
  logic [2:0]  irq_reg;
  logic        stop_reg;   // a STOP has not come to its end
  logic [31:0] errors_reg;
  logic        rd_reg;
  glm_status_t answers;

  assign locked   = glm_locked(wr_addr, training_reg, control.control_rounds);
  assign wr_error = !glm_writable(wr_addr) || locked;

  axil_regs #(.ADDR_WIDTH(AddressBits)) slave (
      .clk, .rst,
      `AXIL_CONNECT(s_axil, s_axil),
      .wr_en, .wr_addr, .wr_data, .wr_strb, .wr_error,
      .rd_en, .rd_addr, .rd_data, .rd_error
  );

  wire start_now = strobe.start && faults == 9'd0 && !training_reg && !stopping;
  wire stopped   = stop_reg && !stopping && !status.state_busy;
  wire done      = training_reg && starting_reg == 3'd0 && !status.state_busy;

  assign start = start_now;

  always_ff @(posedge clk) begin
    written  <= wr_data;
    busy_reg <= status.state_busy;
    irq      <= |(irq_reg & control.irq_enable);
    if (rst) begin
      control      <= GlmControlReset;
      strobe       <= '0;
      starting_reg <= '0;
      training_reg <= 1'b0;
      faults_reg   <= '0;
      irq_reg      <= '0;
      stop_reg    <= 1'b0;
      errors_reg   <= '0;
    end else begin
      if (wr_en && !locked) control <= glm_write(control, wr_addr, wr_data, wr_strb);
      // The stream of rounds ends with it: its switch knows the rounds that were in flight.
      if (strobe.stop) control.control_rounds <= 1'b0;
      strobe       <= wr_en ? glm_strobes(wr_addr, wr_strb) : '0;
      if (strobe.stop) stop_reg <= 1'b1;
      else if (stopped) stop_reg <= 1'b0;
      starting_reg <= {starting_reg[1:0], start_now};
      if (start_now) training_reg <= 1'b1;
      else if (done) training_reg <= 1'b0;
      if (strobe.start) faults_reg <= faults | 9'(training_reg || stopping);
      irq_reg      <= (irq_reg & ~(strobe.irq ? written[2:0] : 3'd0)) | {stopped, strobe.start && !start_now, done && !stop_reg};
      errors_reg   <= errors_reg + 32'(wr_en && wr_error) + 32'(rd_reg && rd_error);
    end
  end

  // ---- reads --------------------------------------------------------------------------------------------------
  logic [31:0] register_reg;
  logic        readable_reg;

  always_comb begin
    answers = status;
    answers.state_busy = status.state_busy || training_reg || busy_reg;
    {answers.irq_stopped, answers.irq_refused, answers.irq_done} = irq_reg;
    {answers.faults_bases, answers.faults_shifts, answers.faults_loss, answers.faults_counts, answers.faults_replay,
     answers.faults_chunks, answers.faults_bits, answers.faults_rounds_off, answers.faults_busy} = faults_reg;
    answers.register_errors = errors_reg;
  end

  assign rd_data  = register_reg;
  assign rd_error = !readable_reg;

  always_ff @(posedge clk) begin
    register_reg <= glm_read(control, answers, rd_addr);
    readable_reg <= glm_readable(rd_addr);
    rd_reg       <= rd_en && !rst;
  end

endmodule : glm_registers
