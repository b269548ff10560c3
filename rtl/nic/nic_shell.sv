// What WorkerNIC and AggNIC share around their transport: registers, soft reset, the host's side, and the MAC's.
`include "parameters.svh"
`include "ports.svh"

module nic_shell
  import catchment_wire_pkg::*;
  import hostif_pkg::*;
  import nic_pkg::*;
  import nic_regs_pkg::*;
  import tag_pkg::*;
  import transport_pkg::*;
#(
    `NIC_PARAMETERS
) (
    input  logic                         clk,
    input  logic                         rst,
    output logic                         irq,

    `AXIL_SLAVE_PORTS(s_axil, AddressBits),

    `AXI_WRITE_PORTS(m_axi),
    `AXI_READ_PORTS(m_axi),

    // frames from the MAC, without FCS; tuser with tlast: damaged
    `AXIS_FRAME_IN_PORTS(s_axis_rx),

    // frames to the MAC; tuser with tlast: cut by a soft reset, do not send it or spoil its FCS
    `AXIS_FRAME_OUT_PORTS(m_axis_tx),

    // the transport's
    output logic                         core_rst,
    output transport_settings_t          settings,
    output tag_keys_t                    keys,
    // high for a clock: a frame found no room to wait for its tag
    input  logic                         tag_lost,
    input  transport_status_t            transport_status,
    output logic [StatIndexBits-1:0]     stat_index,
    input  logic [StatBits-1:0]          stat_value,
    `AXIS_VECTOR_OUT_PORTS(m_axis_vector, tx_meta_t),
    `AXIS_VECTOR_IN_PORTS(s_axis_vector, rx_meta_t),
    `AXIS_KEEP_IN_PORTS(s_axis_frame),
    output logic                         m_axis_frame_tvalid,
    input  logic                         m_axis_frame_tready
);

  localparam bit Root = ROLE == ROLE_ROOT;

  // PUSH_FREE and CAPACITY.queue have eight bits.
  if (QUEUE_DEPTH < 2 || QUEUE_DEPTH > 128 || (QUEUE_DEPTH & (QUEUE_DEPTH - 1)) != 0) begin : gen_bad_queue
    $fatal(1, "nic_shell: QUEUE_DEPTH must be a power of two, 2..128");
  end

  // ---- registers and resets -------------------------------------------------------------------------------
  nic_control_t                 control;
  nic_strobe_t                  strobe;
  logic [31:0]                  written;
  nic_status_t                  status;
  logic [InterruptBits-1:0]     interrupt_set;
  logic [HostStatIndexBits-1:0] host_stat_index;
  logic [StatBits-1:0]          host_stat_value;
  logic                         hold;
  logic                         idle;
  logic                         resetting;
  logic [31:0]                  now;
  host_events_t                 events;
  host_stalls_t                 stalls;
  logic                         frame_cut;
  logic [$clog2(QUEUE_DEPTH):0] push_free;
  logic [$clog2(QUEUE_DEPTH):0] pull_free;
  logic                         fill_ready;
  logic [63:0]                  push_missed_reg;
  logic [63:0]                  pull_missed_reg;
  logic [7:0]                   frames_cut_reg;
  logic                         register_refused;
  logic [31:0]                  tags_lost;

  nic_registers registers (
      .clk,
      .rst,
      .core_rst,
      `AXIL_CONNECT(s_axil, s_axil),
      .control,
      .strobe,
      .written,
      .status,
      .interrupt_set,
      .irq,
      .refused(register_refused),
      .stat_index,
      .stat_value,
      .host_stat_index,
      .host_stat_value
  );

  soft_reset resets (
      .clk,
      .rst,
      .request(strobe.reset && written[0]),
      .busy(resetting),
      .hold,
      .idle,
      .core_rst
  );

  if (TAG_UNITS != 0) begin : gen_tags
    tag_registers tags (
        .clk,
        .rst,
        .strobe,
        .written,
        .keys,
        .lost(tag_lost),
        .lost_count(tags_lost)
    );
  end else begin : gen_no_tags
    assign keys      = '0;
    assign tags_lost = '0;
    wire unused_lost = &{1'b0, tag_lost};
  end

  free_counter #(.WIDTH(32)) clocks (
      .clk, .rst, .now
  );

  always_comb begin
    settings = '{
        tx: '{
            enable: control.control_tx_enable,
            gen: control.tx_gen,
            base_seq: control.tx_base_seq,
            window: control.tx_window,
            slots: control.tx_slots
        },
        rx: '{
            enable: control.control_rx_enable,
            gen: control.rx_gen,
            base_seq: control.rx_base_seq,
            window: control.rx_window,
            slots: control.rx_slots
        },
        address: '{
            local_mac: control.local_mac,
            peer_mac: control.peer_mac,
            local_ip: control.local_ip,
            peer_ip: control.peer_ip,
            local_port: control.ports_local,
            peer_port: control.ports_peer
        },
        timing: '{
            rto: control.rto,
            rto_most: control.rto_most,
            resend_delay: control.resend_delay,
            heartbeat_interval: control.heartbeat_interval
        },
        wid: control.wid,
        pairs: control.lanes_packed,
        all_reduce: control.control_all_reduce
    };

    status                    = '0;
    status.id                 = 32'h4843_5443;
    status.version_map        = 16'd4;
    status.version_protocol   = 8'(Version);
    status.build_root         = Root;
    status.build_all_reduce   = ALL_REDUCE && !Root;
    status.build_tag_units    = 5'(TAG_UNITS);
    status.tagged_tx          = keys.tx.on;
    status.tagged_rx          = keys.rx.on;
    status.tags_lost          = tags_lost;
    status.build_vector_bytes = 16'(VECTOR_BYTES);
    status.capacity_window    = 16'(WINDOW);
    status.capacity_queue     = 8'(QUEUE_DEPTH);
    status.capacity_tlb_log2  = 8'($clog2(TLB_ENTRIES));
    status.block_slots        = Root || !ALL_REDUCE ? '0 : 21'(BLOCK_BEATS / (VECTOR_BYTES / 64) - 1);
    status.now                = now;
    status.state_tx_ready     = transport_status.tx_ready;
    status.state_rx_ready     = transport_status.rx_ready;
    status.state_host_idle    = idle;
    status.state_resetting    = resetting;
    status.state_frames_cut   = frames_cut_reg;
    status.push_free          = 8'(push_free);
    status.pull_free          = 8'(pull_free);
    status.tlb_ready          = fill_ready;
    status.tx_acked           = transport_status.tx_acked;
    status.tx_next            = transport_status.tx_next;
    status.tx_end             = transport_status.tx_end;
    status.tx_credit          = transport_status.tx_credit;
    status.rx_ack             = transport_status.rx_ack;
    status.rx_consumed        = transport_status.rx_consumed;
    status.push_missed        = push_missed_reg;
    status.pull_missed        = pull_missed_reg;

    interrupt_set = {
      events.bus_error,
      events.push_unanswerable || events.pull_unanswerable,
      events.push_missed || events.pull_missed,
      events.push_refused || events.pull_refused,
      events.done && events.done_is_pull,
      events.done && !events.done_is_pull
    };
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      push_missed_reg <= '0;
      pull_missed_reg <= '0;
      frames_cut_reg  <= '0;
    end else begin
      if (frame_cut) frames_cut_reg <= frames_cut_reg + 8'd1;
      if (events.push_missed) push_missed_reg <= events.push_missed_address;
      if (events.pull_missed) pull_missed_reg <= events.pull_missed_address;
    end
  end

  host_stats counters (
      .clk,
      .rst(core_rst),
      .events,
      .stalls,
      .register_refused,
      .index(host_stat_index),
      .value(host_stat_value)
  );

  // Some settings are the registers' own, and most commands look at one bit of what was written.
  wire unused = &{1'b0, control, strobe, written, transport_status};

  // ---- the host's side ---------------------------------------------------------------------------------------
  request_t  push_request;
  request_t  pull_request;
  type_set_t lane_types;
  type_set_t push_types;
  type_set_t pull_types;

  // An AggNIC pushes bytes and pulls sums.  A WorkerNIC pushes gradients; what it pulls depends on the mode.
  assign lane_types = control.lanes_packed ? PairTypes : LaneTypes;
  assign push_types = Root ? ByteTypes : lane_types;
  assign pull_types = Root || (ALL_REDUCE && control.control_all_reduce) ? lane_types : ByteTypes;

  always_comb begin
    push_request = '{
        vaddr: control.push_vaddr,
        len: control.push_len,
        cmpt_ptr: control.push_completion,
        dtype: data_type_t'(control.push_format_dtype),
        exponent: control.push_format_exponent,
        block: control.push_scaling_block,
        tag: control.push_format_tag,
        started: '0
    };
    pull_request = '{
        vaddr: control.pull_vaddr,
        len: control.pull_len,
        cmpt_ptr: control.pull_completion,
        dtype: data_type_t'(control.pull_format_dtype),
        exponent: '0,
        block: control.pull_scaling_block,
        tag: control.pull_format_tag,
        started: '0
    };
  end

  host_datapath #(
      .PUSH_CONVERT(!Root),
      .PULL_CONVERT(Root || ALL_REDUCE),
      .BLOCK(!Root && ALL_REDUCE),
      `DATAPATH_PASS
  ) host (
      .clk,
      .rst(core_rst),
      .hold,
      .idle,
      .now,
      .push_headroom(control.headroom),
      .pull_headroom(control.headroom),
      .pairs(control.lanes_packed),
      .full(control.lanes_full),
      .push_request,
      .push_ring(strobe.push_ring),
      .push_free,
      .push_types,
      .block_allowed(control.control_all_reduce),
      .slots(control.tx_slots),
      .pull_request,
      .pull_ring(strobe.pull_ring),
      .pull_free,
      .pull_types,
      .fill_valid(strobe.tlb_fill),
      .fill_ready,
      .fill_vpn(control.tlb_virtual),
      .fill_ppn(control.tlb_physical),
      .fill_present(written[0]),
      `AXIS_VECTOR_CONNECT(m_axis, m_axis_vector),
      `AXIS_VECTOR_CONNECT(s_axis, s_axis_vector),
      `AXI_WRITE_CONNECT(m_axi, m_axi),
      `AXI_READ_CONNECT(m_axi, m_axi),
      .events,
      .stalls
  );

  // ---- the MAC's side ------------------------------------------------------------------------------------------
  frame_gate gate (
      .clk,
      .rst,
      .core_rst,
      `AXIS_KEEP_CONNECT(s_axis_tx, s_axis_frame),
      `AXIS_FRAME_CONNECT(m_axis_tx, m_axis_tx),
      .s_axis_rx_tlast,
      .s_axis_rx_tvalid,
      .s_axis_rx_tready,
      .m_axis_rx_tvalid(m_axis_frame_tvalid),
      .m_axis_rx_tready(m_axis_frame_tready),
      .cut(frame_cut)
  );

  axis_check check_tx (
      .clk,
      .rst,
      .tdata(m_axis_tx_tdata),
      .tkeep(m_axis_tx_tkeep),
      .tlast(m_axis_tx_tlast),
      .tuser(m_axis_tx_tuser),
      .tvalid(m_axis_tx_tvalid),
      .tready(m_axis_tx_tready)
  );
  axis_check check_rx (
      .clk,
      .rst,
      .tdata(s_axis_rx_tdata),
      .tkeep(s_axis_rx_tkeep),
      .tlast(s_axis_rx_tlast),
      .tuser(s_axis_rx_tuser),
      .tvalid(s_axis_rx_tvalid),
      .tready(s_axis_rx_tready)
  );

endmodule : nic_shell
