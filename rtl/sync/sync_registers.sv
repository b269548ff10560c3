// Registers of a sync node behind AXI4-Lite (rtl/sync_registers.toml): the ring, posts, what is done, counters, interrupt.
`include "ports.svh"

module sync_registers
  import sync_pkg::*;
  import sync_regs_pkg::*;
#(
    // log2 of the longest segment's entries
    parameter int unsigned ENTRIES_LOG2 = 8,
    // lanes are 0: int32, 1: binary32
    parameter bit FP32 = 1'b0
) (
    input  logic               clk,
    input  logic               rst,

    `AXIL_SLAVE_PORTS(s_axil, AddressBits),

    output sync_control_t      control,

    // a tensor that was posted; there is room for all that can be
    output logic               post,
    output tensor_t            post_tensor,
    output logic               post_urgent,
    output work_t              post_work,
    // a tensor of each group is done
    input  logic [1:0]         done,
    input  tensor_t [1:0]      done_tensor,

    // one clock each, for counters
    input  logic [1:0]         sent,
    input  logic [1:0]         damaged,
    input  logic [1:0]         rewound,
    input  logic [1:0]         resent,
    input  logic               broken,
    input  logic [3:0]         memory_error,

    output logic               irq
);

  logic                   wr_en, wr_error, rd_en, rd_error, locked;
  logic [AddressBits-1:0] wr_addr, rd_addr;
  logic [31:0]            wr_data, rd_data;
  logic [3:0]             wr_strb;
  logic [31:0]            written_reg;
  sync_strobe_t           strobe_reg;
  logic [Tensors-1:0]     posted_reg, done_reg, ends;
  sync_status_t           counts_reg, answers;
  logic                   rd_reg, readable_reg;
  logic [31:0]            register_reg;

  assign locked = sync_locked(wr_addr, posted_reg != '0);
  assign wr_error = !sync_writable(wr_addr) || locked;

  axil_regs #(.ADDR_WIDTH(AddressBits)) slave (
      .clk, .rst,
      `AXIL_CONNECT(s_axil, s_axil),
      .wr_en, .wr_addr, .wr_data, .wr_strb, .wr_error,
      .rd_en, .rd_addr, .rd_data, .rd_error
  );

  wire tensor_t wanted = written_reg[TensorBits-1:0];
  // one past the last entry
  wire [32:0] after = {1'b0, control.address[37:6]} + 33'(control.entries);
  // a clock late, as a post comes two clocks after any other write at the earliest
  logic bad_place_reg;
  wire bad_post = posted_reg[wanted] || bad_place_reg;

  assign post = strobe_reg.post && !bad_post;
  assign post_tensor = wanted;
  assign post_urgent = written_reg[8];
  assign post_work = '{address: control.address[37:6], entries: control.entries, maximum: written_reg[9]};

  always_comb begin
    ends = '0;
    for (int unsigned g = 0; g < 2; g++) if (done[g]) ends[done_tensor[g]] = 1'b1;
  end

  always_ff @(posedge clk) begin
    written_reg <= wr_data;
    bad_place_reg <= control.entries == '0 || control.address[5:0] != '0 || (after[32] && after[31:0] != '0)
                  || control.ring_last == '0 || control.ring_position > control.ring_last;
    irq         <= |(done_reg & control.done_enable);
    if (rst) begin
      control    <= SyncControlReset;
      strobe_reg <= '0;
      posted_reg <= '0;
      done_reg   <= '0;
      counts_reg <= '0;
    end else begin
      if (wr_en && !locked) control <= sync_write(control, wr_addr, wr_data, wr_strb);
      strobe_reg <= wr_en ? sync_strobes(wr_addr, wr_strb) : '0;
      posted_reg <= (posted_reg | (post ? Tensors'(1) << wanted : '0)) & ~ends;
      done_reg   <= (done_reg & ~(strobe_reg.done ? written_reg : '0)) | ends;

      counts_reg.clocks          <= counts_reg.clocks + 64'd1;
      counts_reg.sent_next       <= counts_reg.sent_next + 32'(sent[0]);
      counts_reg.sent_before     <= counts_reg.sent_before + 32'(sent[1]);
      counts_reg.damaged         <= counts_reg.damaged + 32'(damaged[0]) + 32'(damaged[1]);
      counts_reg.rewinds         <= counts_reg.rewinds + 32'(rewound[0]) + 32'(rewound[1]);
      counts_reg.resent          <= counts_reg.resent + 32'(resent[0]) + 32'(resent[1]);
      counts_reg.refused         <= counts_reg.refused + 32'(strobe_reg.post && bad_post);
      counts_reg.broken          <= counts_reg.broken + 32'(broken);
      counts_reg.memory_errors   <= counts_reg.memory_errors + 32'(memory_error[0]) + 32'(memory_error[1]) + 32'(memory_error[2]) + 32'(memory_error[3]);
      counts_reg.register_errors <= counts_reg.register_errors + 32'(wr_en && wr_error) + 32'(rd_reg && rd_error);
    end
  end

  // ---- reads ----------------------------------------------------------------------------------------------------
  always_comb begin
    answers = counts_reg;
    answers.id = 32'h4e59_5343;
    answers.version = 16'd1;
    answers.build_entries_log2 = 8'(ENTRIES_LOG2);
    answers.build_tensors_log2 = 8'(TensorBits);
    answers.build_fp32 = FP32;
    answers.posted = posted_reg;
    answers.done = done_reg;
  end

  assign rd_data  = register_reg;
  assign rd_error = !readable_reg;

  always_ff @(posedge clk) begin
    register_reg <= sync_read(control, answers, rd_addr);
    readable_reg <= sync_readable(rd_addr);
    rd_reg       <= rd_en && !rst;
  end

  wire unused = &{1'b0, written_reg[31:10], written_reg[7:TensorBits], strobe_reg};

endmodule : sync_registers
