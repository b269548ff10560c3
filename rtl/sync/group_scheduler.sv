// Has all devices of a ring sum the same tensors in the same order, whatever the order in which they are ready.
//
// A tensor's lowest bit is its group; a group has one leader, device 0 or 1, since two would number its tensors twice.  A device
// tells the leader that a tensor is there (READY).  When all have, the leader sends GO around the ring: urgent tensors first,
// then the oldest.  Links keep messages in order, so every device sees a group's GOs in the order of their turns.
//
// Messages go around one way, and a new one enters only where two places are free: one stays free, and the ring never fills.
module group_scheduler
  import sync_pkg::*;
#(
    // tensors of a group that a leader lets run before the first of them is done
    parameter int unsigned AHEAD = 2
) (
    input  logic             clk,
    input  logic             rst,

    // this device's place, and that of the last one
    input  logic [3:0]       position,
    input  logic [3:0]       last,

    // a tensor is there at this device
    input  tensor_t          s_tensor,
    input  logic             s_urgent,
    input  logic             s_valid,
    output logic             s_ready,

    input  message_t         s_message,
    input  logic             s_message_valid,
    output logic             s_message_ready,
    output message_t         m_message,
    // places that must be free for it at the next device
    output logic [1:0]       m_message_places,
    output logic             m_message_valid,
    input  logic             m_message_ready,

    // for each group: the tensor to sum next, and the end of one
    output tensor_t [1:0]    m_tensor,
    output logic    [1:0]    m_valid,
    input  logic    [1:0]    m_ready,
    input  logic    [1:0]    done,

    // one clock: a GO came out of its turn, or a READY twice
    output logic             broken
);

  localparam int unsigned AheadBits = $clog2(AHEAD + 1);

  logic [Tensors-1:0][15:0] there_reg;  // at a leader: the devices that have the tensor
  logic [1:0][7:0]          turn_reg;   // of the next GO of each group
  logic [1:0][AheadBits-1:0] running_reg;  // GOs of the groups that this device leads, whose tensors are not done
  tensor_t [1:0]            urgent, normal;
  logic    [1:0]            urgent_valid, urgent_taken, normal_valid, normal_taken, go_ready, ready_room;

  wire [15:0] everybody = 16'((17'd2 << last) - 17'd1);
  wire [3:0]  next = position == last ? 4'd0 : position + 4'd1;

  function automatic logic leads(input logic [3:0] device, input logic group);
    return device == {3'd0, group};
  endfunction

  // ---- what came around comes first, then own GOs, then own READYs ------------------------------------------------
  wire came_ready = s_message_valid && s_message.kind == MESSAGE_READY;
  wire came_go = s_message_valid && s_message.kind == MESSAGE_GO;
  wire came_group = s_message.tensor[0];
  wire for_us = came_ready && leads(position, came_group);
  wire ends_here = came_go && s_message.device == next;
  wire forwards = s_message_valid && !for_us && !ends_here;
  // A GO goes on and to our own group at once.
  wire came_moves = s_message_valid && (!came_go || go_ready[came_group]) && (!forwards || m_message_ready);

  logic [1:0] may_go;
  for (genvar g = 0; g < 2; g++) begin : gen_group
    assign may_go[g] = (urgent_valid[g] || normal_valid[g]) && running_reg[g] != AheadBits'(AHEAD) && go_ready[g];
  end
  wire go_group = !may_go[0];
  wire goes = may_go != '0 && !s_message_valid;
  wire tensor_t go_tensor = urgent_valid[go_group] ? urgent[go_group] : normal[go_group];
  wire go_moves = goes && m_message_ready;

  wire own_group = s_tensor[0];
  wire own_leads = leads(position, own_group);
  wire own_turn = s_valid && !s_message_valid && !goes;
  wire own_moves = own_turn && (own_leads || m_message_ready);

  assign s_message_ready = came_moves;
  assign s_ready = own_moves;
  assign m_message_places = s_message_valid ? 2'd1 : 2'd2;

  always_comb begin
    m_message = s_message;
    m_message_valid = forwards && (!came_go || go_ready[came_group]);
    if (!s_message_valid) begin
      m_message_valid = goes || (own_turn && !own_leads);
      if (goes)
        m_message = '{kind: MESSAGE_GO, device: position, tensor: go_tensor, urgent: 1'b0, turn: turn_reg[go_group]};
      else m_message = '{kind: MESSAGE_READY, device: position, tensor: s_tensor, urgent: s_urgent, turn: '0};
    end
  end

  // ---- a leader's tensors ---------------------------------------------------------------------------------------
  wire          counts = (for_us && came_moves) || (own_moves && own_leads);
  wire tensor_t counted = s_message_valid ? s_message.tensor : s_tensor;
  wire [3:0]    from = s_message_valid ? s_message.device : position;
  wire          is_urgent = s_message_valid ? s_message.urgent : s_urgent;
  wire [15:0]   now_there = there_reg[counted] | 16'd1 << from;
  wire          complete = counts && now_there == everybody;

  always_ff @(posedge clk) begin
    broken <= (counts && there_reg[counted][from]) || (came_go && came_moves && s_message.turn != turn_reg[came_group]);
    if (rst) there_reg <= '0;
    else if (counts) there_reg[counted] <= complete ? '0 : now_there;
  end

  for (genvar g = 0; g < 2; g++) begin : gen_queues
    wire goes_here = (go_moves && go_group == (g == 1)) || (came_go && came_moves && came_group == (g == 1));
    logic urgent_room, normal_room;

    // All tensors of a group fit, and none is there twice.
    sync_fifo #(.WIDTH(TensorBits), .DEPTH(Tensors / 2), .RAM_STYLE("distributed")) urgent_queue (
        .clk, .rst, .s_data(counted), .s_valid(complete && is_urgent && counted[0] == (g == 1)), .s_ready(urgent_room),
        .m_data(urgent[g]), .m_valid(urgent_valid[g]), .m_ready(urgent_taken[g]), .level()
    );
    sync_fifo #(.WIDTH(TensorBits), .DEPTH(Tensors / 2), .RAM_STYLE("distributed")) normal_queue (
        .clk, .rst, .s_data(counted), .s_valid(complete && !is_urgent && counted[0] == (g == 1)), .s_ready(normal_room),
        .m_data(normal[g]), .m_valid(normal_valid[g]), .m_ready(normal_taken[g]), .level()
    );
    sync_fifo #(.WIDTH(TensorBits), .DEPTH(2 * AHEAD), .RAM_STYLE("distributed")) to_run (
        .clk, .rst, .s_data(s_message_valid ? s_message.tensor : go_tensor), .s_valid(goes_here), .s_ready(go_ready[g]),
        .m_data(m_tensor[g]), .m_valid(m_valid[g]), .m_ready(m_ready[g]), .level()
    );
    assign urgent_taken[g] = go_moves && go_group == (g == 1) && urgent_valid[g];
    assign normal_taken[g] = go_moves && go_group == (g == 1) && !urgent_valid[g];
    assign ready_room[g] = urgent_room && normal_room;

    wire led = leads(position, g == 1);
    always_ff @(posedge clk) begin
      if (rst) begin
        turn_reg[g]    <= '0;
        running_reg[g] <= '0;
      end else begin
        turn_reg[g]    <= turn_reg[g] + 8'(goes_here);
        running_reg[g] <= running_reg[g] + AheadBits'(goes_here && led) - AheadBits'(done[g] && led);
      end
    end
  end

`ifdef VERILATOR
  a_room :
  assert property (@(posedge clk) disable iff (rst) complete |-> &ready_room)
  else $error("%m: more tensors than there are");
`else
  wire unused = &{1'b0, ready_room};
`endif

endmodule : group_scheduler
