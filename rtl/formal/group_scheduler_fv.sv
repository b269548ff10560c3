// Proves of group_scheduler, for any place in a ring of 2 to 16 devices: a leader says GO for a tensor only when all devices have
// said READY since the last GO for it, once, and lets AHEAD run; GOs are run and passed on in the order of their turns, each once.
// A message that is new to the ring enters only where two places are free, and one that came around where one is.
//
// One device is proved at a time.  Of its neighbours it assumes what is proved of it: GOs come in the order of their turns.  A
// leader assumes nothing of GOs, its own being the only ones, so the argument starts there and goes around the ring.
// Tensors are 4 here, 2 for each group (sync_pkg).
module group_scheduler_fv
  import sync_pkg::*;
#(
    parameter int unsigned AHEAD = 2
) (
    input logic       clk,
    input logic       rst,
    input tensor_t    s_tensor,
    input logic       s_urgent,
    input logic       s_valid,
    input message_t   s_message,
    input logic       s_message_valid,
    input logic       m_message_ready,
    input logic [1:0] m_ready,
    input logic [1:0] done
);

  logic          s_ready, s_message_ready, m_message_valid, broken;
  message_t      m_message;
  logic [1:0]    m_message_places, m_valid;
  tensor_t [1:0] m_tensor;

  // any place in any ring, always the same
  logic [3:0] position_reg, last_reg;

  group_scheduler #(.AHEAD(AHEAD)) dut (.position(position_reg), .last(last_reg), .*);

  wire [15:0] everybody = 16'((17'd2 << last_reg) - 17'd1);
  wire [3:0]  next = position_reg == last_reg ? 4'd0 : position_reg + 4'd1;

  function automatic logic [3:0] leader(input tensor_t tensor);
    return {3'd0, tensor[0]};
  endfunction

  wire comes = s_message_valid && s_message_ready;
  wire leaves = m_message_valid && m_message_ready;
  wire posts = s_valid && s_ready;
  wire hears_ready = comes && s_message.kind == MESSAGE_READY && leader(s_message.tensor) == position_reg;
  wire keeps_ready = posts && leader(s_tensor) == position_reg;
  wire hears_go = comes && s_message.kind == MESSAGE_GO;
  wire says_go = leaves && m_message.kind == MESSAGE_GO && m_message.device == position_reg;
  wire passes_on = comes && !hears_ready && !(hears_go && s_message.device == next);

  logic                     past_reg = 1'b0;
  logic                     first_reg;    // the first clock after reset
  logic [Tensors-1:0][15:0] seen_reg;     // devices whose READY for a tensor has come since its last GO
  logic [1:0][7:0]          gone_reg;     // GOs of a group so far
  logic [1:0][7:0]          running_reg;  // of those that were said here, not done
  logic [1:0]               forwarded_reg;

  always_ff @(posedge clk) begin
    position_reg <= position_reg;
    last_reg     <= last_reg;
    past_reg     <= 1'b1;
    first_reg    <= rst;
    if (!past_reg) assume (rst);
    else assume (!rst);
    assume (last_reg != '0 && position_reg <= last_reg);
    // A device has a tensor once until its GO has come around, and messages end before the device that they are from.
    if (s_message_valid) begin
      assume (s_message.device <= last_reg && s_message.device != position_reg);
      if (s_message.kind == MESSAGE_READY)
        assume (leader(s_message.tensor) != position_reg || !seen_reg[s_message.tensor][s_message.device]);
      else begin
        assume (s_message.device == leader(s_message.tensor));
        assume (s_message.turn == gone_reg[s_message.tensor[0]]);
      end
    end
    if (s_valid) assume (leader(s_tensor) != position_reg || !seen_reg[s_tensor][position_reg]);
    for (int unsigned g = 0; g < 2; g++) assume (!done[g] || running_reg[g] != '0 || position_reg != 4'(g));
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      seen_reg      <= '0;
      gone_reg      <= '0;
      running_reg   <= '0;
      forwarded_reg <= '0;
    end else begin
      if (hears_ready) seen_reg[s_message.tensor][s_message.device] <= 1'b1;
      if (keeps_ready) seen_reg[s_tensor][position_reg] <= 1'b1;
      if (says_go) seen_reg[m_message.tensor] <= '0;
      for (int unsigned g = 0; g < 2; g++) begin
        gone_reg[g] <= gone_reg[g] + 8'((says_go && m_message.tensor[0] == g[0]) || (hears_go && s_message.tensor[0] == g[0]));
        running_reg[g] <= running_reg[g] + 8'(says_go && m_message.tensor[0] == g[0]) - 8'(done[g] && position_reg == 4'(g));
        if (hears_go && leaves && s_message.tensor[0] == g[0]) forwarded_reg[g] <= 1'b1;
      end
    end
  end

  always_ff @(posedge clk) begin
    if (past_reg && !rst) begin
      all_are_ready : assert (!says_go || seen_reg[m_message.tensor] == everybody);
      by_its_leader : assert (!says_go || leader(m_message.tensor) == position_reg);
      in_turn : assert (!(leaves && m_message.kind == MESSAGE_GO) || m_message.turn == gone_reg[m_message.tensor[0]]);
      not_at_once : assert (!(says_go && hears_go));
      passed_on : assert (!passes_on || (leaves && m_message == s_message));
      own_ready : assert (!(posts && !keeps_ready) || (leaves && m_message.kind == MESSAGE_READY && m_message.tensor == s_tensor
                                                       && m_message.device == position_reg && m_message.urgent == s_urgent));
      // A message that is new to the ring leaves a place free in it.
      free_place : assert (!m_message_valid || m_message_places == (m_message.device == position_reg ? 2'd2 : 2'd1));
      nothing_else : assert (!leaves || says_go || passes_on || (posts && !keeps_ready));
      whole : assert (first_reg || !broken);
      ready_has_room : assert (!dut.complete || &dut.ready_room);
      counted : assert (dut.turn_reg == gone_reg);
    end
  end

  for (genvar g = 0; g < 2; g++) begin : gen_group
    wire run_now = (says_go && m_message.tensor[0] == (g == 1)) || (hears_go && s_message.tensor[0] == (g == 1));
    wire tensor_t run_next = hears_go ? s_message.tensor : m_message.tensor;
    wire [1:0] urgent_stored = dut.gen_queues[g].urgent_queue.write_reg - dut.gen_queues[g].urgent_queue.read_reg;
    wire [1:0] normal_stored = dut.gen_queues[g].normal_queue.write_reg - dut.gen_queues[g].normal_queue.read_reg;

    always_ff @(posedge clk) begin
      if (past_reg && !rst) begin
        ahead : assert (running_reg[g] <= 8'(AHEAD));
        as_many : assert (position_reg != 4'(g) || 8'(dut.running_reg[g]) == running_reg[g]);
        idle_elsewhere : assert (position_reg == 4'(g) || dut.running_reg[g] == '0);
        // what goes into the queue of tensors to run, whose order sync_fifo's proof has
        runs_it : assert (dut.gen_queues[g].to_run.s_valid == run_now);
        runs_once : assert (!run_now || (dut.gen_queues[g].to_run.s_ready && dut.gen_queues[g].to_run.s_data == run_next));
        urgent_level : assert (urgent_stored <= 2'd2);
        normal_level : assert (normal_stored <= 2'd2);
      end
    end
  end

  // What makes it inductive: a tensor waits in one place of its own group's queues exactly if all devices have it.
  for (genvar t = 0; t < Tensors; t++) begin : gen_tensor
    localparam int G = t % 2;
    wire [1:0] urgent_stored = dut.gen_queues[G].urgent_queue.write_reg - dut.gen_queues[G].urgent_queue.read_reg;
    wire [1:0] normal_stored = dut.gen_queues[G].normal_queue.write_reg - dut.gen_queues[G].normal_queue.read_reg;
    wire       urgent_first = dut.gen_queues[G].urgent_queue.read_reg[0];
    wire       normal_first = dut.gen_queues[G].normal_queue.read_reg[0];
    logic [2:0] places, foreign;

    always_comb begin
      places = 3'(dut.gen_queues[G].urgent_queue.valid_reg && dut.gen_queues[G].urgent_queue.out_reg == tensor_t'(t))
             + 3'(dut.gen_queues[G].normal_queue.valid_reg && dut.gen_queues[G].normal_queue.out_reg == tensor_t'(t));
      foreign = 3'(dut.gen_queues[G].urgent_queue.valid_reg && dut.gen_queues[G].urgent_queue.out_reg[0] != (G == 1))
              + 3'(dut.gen_queues[G].normal_queue.valid_reg && dut.gen_queues[G].normal_queue.out_reg[0] != (G == 1));
      for (int unsigned i = 0; i < 2; i++) begin
        if (2'(i) < urgent_stored) begin
          places += 3'(dut.gen_queues[G].urgent_queue.memory[urgent_first ^ i[0]] == tensor_t'(t));
          foreign += 3'(dut.gen_queues[G].urgent_queue.memory[urgent_first ^ i[0]][0] != (G == 1));
        end
        if (2'(i) < normal_stored) begin
          places += 3'(dut.gen_queues[G].normal_queue.memory[normal_first ^ i[0]] == tensor_t'(t));
          foreign += 3'(dut.gen_queues[G].normal_queue.memory[normal_first ^ i[0]][0] != (G == 1));
        end
      end
    end

    always_ff @(posedge clk) begin
      if (past_reg && !rst) begin
        of_devices : assert ((seen_reg[t] & ~everybody) == '0);
        led_here : assert (position_reg == leader(tensor_t'(t)) || seen_reg[t] == '0);
        of_its_group : assert (foreign == '0);
        waits_once : assert (places == 3'(seen_reg[t] == everybody));
        as_seen : assert (dut.there_reg[t] == (seen_reg[t] == everybody ? '0 : seen_reg[t]));
        again : cover (says_go && m_message.tensor == tensor_t'(t) && gone_reg[G] == 8'd1 && last_reg == 4'd1);
      end
    end
  end

  always_ff @(posedge clk) begin
    if (past_reg && !rst) begin
      both_wait : cover (dut.urgent_valid[0] && dut.normal_valid[0] && last_reg == 4'd1);
      of_four : cover (says_go && last_reg == 4'd3);
      on_to_the_next : cover (&forwarded_reg && position_reg == 4'd3);
    end
  end

endmodule : group_scheduler_fv
