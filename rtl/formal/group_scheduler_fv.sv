// Proves of group_scheduler, with any neighbours: a leader's GO for a tensor, any one, has a READY of every device before it,
// one for each; turns count up; no more run ahead than may; what is not for this device goes on as it came.
module group_scheduler_fv
  import sync_pkg::*;
(
    input logic          clk,
    input logic          rst,
    input logic [3:0]    position,
    input logic [3:0]    last,
    input tensor_t       s_tensor,
    input logic          s_urgent,
    input logic          s_valid,
    input message_t      s_message,
    input logic          s_message_valid,
    input logic          m_message_ready,
    input logic [1:0]    m_ready,
    input logic [1:0]    done,
    input tensor_t       any
);

  logic          s_ready, s_message_ready, m_message_valid, broken;
  message_t      m_message;
  logic [1:0]    m_message_places, m_valid;
  tensor_t [1:0] m_tensor;

  group_scheduler dut (.*);

  logic            past_reg = 1'b0;
  tensor_t         watched_reg;
  logic [15:0]     there_reg;     // READYs of the watched tensor since its last GO
  logic [1:0][1:0] ahead_reg;     // GOs that this device has sent, less those done
  logic [1:0][3:0] runs_reg;      // GOs of each group

  wire [15:0] everybody = 16'((17'd2 << last) - 17'd1);
  wire own = s_valid && s_ready;
  wire came = s_message_valid && s_message_ready;
  wire came_ready = came && s_message.kind == MESSAGE_READY;
  wire came_go = came && s_message.kind == MESSAGE_GO;
  wire for_us = came_ready && position == 4'(s_message.tensor[0]);
  wire leaves = m_message_valid && m_message_ready;
  wire own_go = leaves && !s_message_valid && m_message.kind == MESSAGE_GO;
  wire own_ready = own && position == 4'(s_tensor[0]);
  wire watched_ready = (for_us && s_message.tensor == watched_reg) || (own_ready && s_tensor == watched_reg);
  wire [3:0] from = s_message_valid ? s_message.device : position;

  always_ff @(posedge clk) begin
    past_reg    <= 1'b1;
    watched_reg <= past_reg ? watched_reg : any;
    if (!past_reg) assume (rst);
    else assume (!rst && $stable(position) && $stable(last));
    assume (last != 4'd0 && position <= last);
    // Neighbours: each device says of a tensor once that it is there, and a GO has its turn.
    assume (!s_message_valid || (s_message.device <= last && s_message.device != position));
    assume (!(for_us && s_message.tensor == watched_reg) || !there_reg[s_message.device]);
    assume (!(own && s_tensor == watched_reg) || !there_reg[position]);
    assume (!came_go || position != 4'(s_message.tensor[0]));
    for (int unsigned g = 0; g < 2; g++) assume (!done[g] || position != 4'(g) || ahead_reg[g] != 2'd0);

    if (rst) begin
      there_reg <= '0;
      ahead_reg <= '0;
      runs_reg  <= '0;
    end else begin
      if (own_go && m_message.tensor == watched_reg) there_reg <= '0;
      else if (watched_ready) there_reg <= there_reg | 16'd1 << from;
      for (int unsigned g = 0; g < 2; g++) begin
        ahead_reg[g] <= ahead_reg[g] + 2'(own_go && m_message.tensor[0] == (g == 1)) - 2'(done[g] && position == 4'(g));
        runs_reg[g] <= runs_reg[g] + 4'((own_go && m_message.tensor[0] == (g == 1)) || (came_go && s_message.tensor[0] == (g == 1)));
      end
    end

    if (past_reg && !rst) begin
      all_are_there : assert (!(own_go && m_message.tensor == watched_reg) || there_reg == everybody);
      leader_only : assert (!own_go || (position == 4'(m_message.tensor[0]) && m_message.device == position));
      turn_is_next : assert (!own_go || m_message.turn[3:0] == runs_reg[m_message.tensor[0]]);
      not_too_far : assert (ahead_reg[0] <= 2'd2 && ahead_reg[1] <= 2'd2);
      as_it_came : assert (!(came_ready && !for_us) || (leaves && m_message == s_message));
      goes_around : assert (!(came_go && s_message.device != (position == last ? 4'd0 : position + 4'd1)) || (leaves && m_message == s_message));
      a_place_stays_free : assert (!leaves || m_message_places == 2'd2 || (s_message_valid && m_message == s_message));
      own_is_said : assert (!(own && !own_ready) || (leaves && m_message.kind == MESSAGE_READY && m_message.tensor == s_tensor
                                                     && m_message.device == position));
      goes : cover (own_go && m_message.tensor == watched_reg && last == 4'd2 && watched_reg == tensor_t'(3));
      waits : cover (there_reg != everybody && there_reg != '0 && ahead_reg[1] == 2'd1);
      forwards : cover (came_go && leaves);
    end
  end

endmodule : group_scheduler_fv
