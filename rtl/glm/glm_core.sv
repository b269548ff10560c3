// P4SGD's worker as a core: `glm_worker` behind registers on AXI4-Lite (docs/glm-registers.md), AXI4 to its memories,
// AXI-Stream to a MAC.
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
    // rounds in flight, a power of two
    parameter int unsigned SLOTS = RoundSlots,
    localparam int unsigned IndexBits = $clog2(MODEL_ROWS),
    localparam int unsigned EngineBits = ENGINES > 1 ? $clog2(ENGINES) : 1
) (
    input  logic                     clk,
    input  logic                     rst,

    input  logic [AddressBits-1:0]   s_axil_awaddr,
    input  logic [2:0]               s_axil_awprot,
    input  logic                     s_axil_awvalid,
    output logic                     s_axil_awready,
    input  logic [31:0]              s_axil_wdata,
    input  logic [3:0]               s_axil_wstrb,
    input  logic                     s_axil_wvalid,
    output logic                     s_axil_wready,
    output logic [1:0]               s_axil_bresp,
    output logic                     s_axil_bvalid,
    input  logic                     s_axil_bready,
    input  logic [AddressBits-1:0]   s_axil_araddr,
    input  logic [2:0]               s_axil_arprot,
    input  logic                     s_axil_arvalid,
    output logic                     s_axil_arready,
    output logic [31:0]              s_axil_rdata,
    output logic [1:0]               s_axil_rresp,
    output logic                     s_axil_rvalid,
    input  logic                     s_axil_rready,
    output logic                     irq,

    // an engine's memory port
    output logic [ENGINES-1:0][63:0] m_axi_araddr,
    output logic [ENGINES-1:0][7:0]  m_axi_arlen,
    output logic [ENGINES-1:0]       m_axi_arvalid,
    input  logic [ENGINES-1:0]       m_axi_arready,
    input  logic [ENGINES-1:0][511:0] m_axi_rdata,
    input  logic [ENGINES-1:0][1:0]  m_axi_rresp,
    input  logic [ENGINES-1:0]       m_axi_rlast,
    input  logic [ENGINES-1:0]       m_axi_rvalid,
    output logic [ENGINES-1:0]       m_axi_rready,

    // the labels'
    output logic [63:0]              m_axi_label_araddr,
    output logic [7:0]               m_axi_label_arlen,
    output logic                     m_axi_label_arvalid,
    input  logic                     m_axi_label_arready,
    input  logic [511:0]             m_axi_label_rdata,
    input  logic [1:0]               m_axi_label_rresp,
    input  logic                     m_axi_label_rlast,
    input  logic                     m_axi_label_rvalid,
    output logic                     m_axi_label_rready,

    output logic [511:0]             m_axis_tx_tdata,
    output logic [63:0]              m_axis_tx_tkeep,
    output logic                     m_axis_tx_tlast,
    output logic                     m_axis_tx_tuser,
    output logic                     m_axis_tx_tvalid,
    input  logic                     m_axis_tx_tready,

    input  logic [511:0]             s_axis_rx_tdata,
    input  logic [63:0]              s_axis_rx_tkeep,
    input  logic                     s_axis_rx_tlast,
    input  logic                     s_axis_rx_tuser,
    input  logic                     s_axis_rx_tvalid,
    output logic                     s_axis_rx_tready
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
      .s_axil_awaddr, .s_axil_awprot, .s_axil_awvalid, .s_axil_awready,
      .s_axil_wdata, .s_axil_wstrb, .s_axil_wvalid, .s_axil_wready,
      .s_axil_bresp, .s_axil_bvalid, .s_axil_bready, .s_axil_araddr,
      .s_axil_arprot, .s_axil_arvalid, .s_axil_arready, .s_axil_rdata,
      .s_axil_rresp, .s_axil_rvalid, .s_axil_rready,
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
      .clk, .training, .base(bases[ENGINES-1:0]), .label_base(control.label_base), .rounds_on(control.control_rounds),
      .busy, .faults
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
      .m_axi_araddr, .m_axi_arlen, .m_axi_arvalid, .m_axi_arready,
      .m_axi_rdata, .m_axi_rresp, .m_axi_rlast, .m_axi_rvalid,
      .m_axi_rready, .m_axi_label_araddr, .m_axi_label_arlen, .m_axi_label_arvalid,
      .m_axi_label_arready, .m_axi_label_rdata, .m_axi_label_rresp, .m_axi_label_rlast,
      .m_axi_label_rvalid, .m_axi_label_rready,
      .model_write, .model_engine, .model_row, .model_in, .model_out,
      .m_axis_tx_tdata, .m_axis_tx_tkeep, .m_axis_tx_tlast, .m_axis_tx_tuser,
      .m_axis_tx_tvalid, .m_axis_tx_tready, .s_axis_rx_tdata, .s_axis_rx_tkeep,
      .s_axis_rx_tlast, .s_axis_rx_tuser, .s_axis_rx_tvalid, .s_axis_rx_tready
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
