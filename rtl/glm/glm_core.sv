// P4SGD's worker as a core: `glm_worker` behind registers on AXI4-Lite (docs/reference/glm-registers.md), AXI4 to its memories,
// AXI-Stream to a MAC.
`include "ports.svh"

module glm_core
  import catchment_wire_pkg::Version;
  import glm_numbers_pkg::*;
  import glm_pkg::*;
  import glm_regs_pkg::*;
#(
    parameter int unsigned ENGINES = 8,
    // of an engine: rows of 16 weights, words between forward and backward propagation, words read ahead; powers of two
    parameter int unsigned MODEL_ROWS = 16384,
    parameter int unsigned REPLAY_WORDS = 8192,
    parameter int unsigned BUFFER_WORDS = 256,
    // number of rounds in flight, a power of two, 2..32768
    parameter int unsigned SLOTS = RoundSlots,
    localparam int unsigned IndexBits = $clog2(MODEL_ROWS),
    localparam int unsigned EngineBits = ENGINES > 1 ? $clog2(ENGINES) : 1
) (
    input  logic                     clk,
    input  logic                     rst,

    `AXIL_SLAVE_PORTS(s_axil, AddressBits),
    output logic                     irq,

    // an engine's memory port
    `AXI_READ_PORTS(m_axi, [ENGINES-1:0]),

    // the memory port of the labels
    `AXI_READ_PORTS(m_axi_label),

    `AXIS_FRAME_OUT_PORTS(m_axis_tx),

    `AXIS_FRAME_IN_PORTS(s_axis_rx)
);

  localparam logic [31:0] Letters = 32'h4d4c_4743;
  localparam int unsigned MapVersion = 1;

  glm_control_t             control;
  glm_strobe_t              strobe;
  glm_status_t              status;
  logic [31:0]              written;
  logic [8:0]               faults;
  logic                     start;
  logic                     worker_busy;
  logic                     busy;
  logic                     stop;
  logic                     clear;
  logic                     stopping;
  logic                     reading;
  worker_counts_t           counts;
  training_t                training;
  rounds_t                  rounds;
  logic [7:0][63:0]         bases;

  glm_registers registers (
      .clk, .rst,
      `AXIL_CONNECT(s_axil, s_axil),
      .control, .strobe, .written, .status, .stopping, .faults, .start, .irq
  );

  assign training = '{
      bits: control.bits,
      chunks: control.chunks,
      micro_batches: control.micro_batches,
      batch: control.batch,
      epochs: control.epochs,
      loss: loss_t'(control.loss),
      forward_shift: control.forward_shift,
      multiplier: control.multiplier,
      update_shift: control.update_shift
  };

  assign rounds = '{
      enable: control.control_rounds,
      gen: control.gen,
      base_seq: control.base_seq,
      slots: control.slots,
      rto: control.rto,
      wid: control.wid,
      address: '{
          local_mac: control.local_mac,
          peer_mac: control.peer_mac,
          local_ip: control.local_ip,
          peer_ip: control.peer_ip,
          local_port: control.ports_local,
          peer_port: control.ports_peer
      }
  };

  assign bases = {control.base_7, control.base_6, control.base_5, control.base_4,
                  control.base_3, control.base_2, control.base_1, control.base_0};

  start_check #(.ENGINES(ENGINES), .MODEL_ROWS(MODEL_ROWS), .REPLAY_WORDS(REPLAY_WORDS)) check (
      .clk, .training, .base(bases[ENGINES-1:0]), .label_base(control.label_base),
      // without a slot no round would ever begin
      .rounds_on(control.control_rounds && control.slots != '0), .busy, .faults
  );

  // ---- STOP --------------------------------------------------------------------------------------------------
  // Long enough for whatever is on its way through an engine to leave.
  soft_reset #(.CLOCKS(32)) ender (
      .clk, .rst, .request(strobe.stop), .busy(stopping), .hold(stop), .idle(!reading), .core_rst(clear)
  );

  assign busy = worker_busy || stopping;

  // ---- the model -----------------------------------------------------------------------------------------------
  logic                  model_write;
  logic [EngineBits-1:0] model_engine;
  logic [IndexBits-1:0]  model_row;
  logic [RowBits-1:0]    model_in;
  logic [RowBits-1:0]    model_out;
  logic [20:0]           position;
  logic [31:0]           weight;
  logic                  model_ready;

  model_window #(.ENGINES(ENGINES), .MODEL_ROWS(MODEL_ROWS)) window (
      .clk, .rst, .idle(!busy && !start),
      .seek(strobe.model_seek), .put(strobe.model_in), .next(strobe.model_next), .written,
      .position, .weight, .ready(model_ready),
      .model_write, .model_engine, .model_row, .model_in, .model_out
  );

  // ---- the worker ----------------------------------------------------------------------------------------------
  glm_worker #(
      .ENGINES(ENGINES), .MODEL_ROWS(MODEL_ROWS), .REPLAY_WORDS(REPLAY_WORDS), .BUFFER_WORDS(BUFFER_WORDS), .SLOTS(SLOTS)
  ) worker (
      .clk, .rst, .rounds, .training, .base(bases[ENGINES-1:0]), .label_base(control.label_base), .start, .stop, .clear, .reading, .busy(worker_busy),
      .counts, .events(),
      `AXI_READ_CONNECT(m_axi, m_axi), `AXI_READ_CONNECT(m_axi_label, m_axi_label),
      .model_write, .model_engine, .model_row, .model_in, .model_out,
      `AXIS_FRAME_CONNECT(m_axis_tx, m_axis_tx), `AXIS_FRAME_CONNECT(s_axis_rx, s_axis_rx)
  );

  always_comb begin
    status                   = '0;
    status.id                = Letters;
    status.version_map       = 16'(MapVersion);
    status.version_protocol  = 8'(Version);
    status.build_engines     = 8'(ENGINES);
    status.build_rows_log2   = 8'(IndexBits);
    status.build_replay_log2 = 8'($clog2(REPLAY_WORDS));
    status.build_slots_log2  = 8'($clog2(SLOTS));
    status.state_busy        = busy;
    status.state_stopping    = stopping;
    status.state_model_ready = model_ready;
    status.model_position    = position;
    status.model_out         = weight;
    status.clocks            = counts.clocks;
    status.starved           = counts.starved;
    status.saturated         = counts.saturated;
    status.peer_saturated    = counts.peer_saturated;
    status.memory_error      = counts.error;
    status.begun             = counts.rounds.begun;
    status.repeated          = counts.rounds.repeated;
    status.sums              = counts.rounds.sums;
    status.confirmed         = counts.rounds.confirmed;
    status.unasked           = counts.rounds.unasked;
    status.refused           = counts.rounds.refused;
    status.reject            = counts.rounds.reason;
  end

  if (ENGINES < 8) begin : gen_unused
    wire unused_bases = &{1'b0, bases[7:ENGINES]};
  end
  wire unused = &{1'b0, strobe.start, strobe.irq, control.irq_enable};

endmodule : glm_core
