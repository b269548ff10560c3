// What leaves p4sgd.p4: a sum or a confirmation, to all workers when it is new, to the sender alone when it asks again.
// A leaf of a tree sends its rack's sum and its rack's acknowledgement to its parent, each time somebody asks, and passes
// on to all its workers what the parent answers.
#ifndef CATCHMENT_ANSWERS_P4
#define CATCHMENT_ANSWERS_P4

control Answers(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    @brief("a copy to each worker")
    action to_workers(@brief("PacketType that the frame leaves as") PacketType type) {
        hdr.catchment.type = type;
        standard_metadata.mcast_grp = meta.job.group;
        meta.route = Route.JOB;
    }
    @brief("back to the one who sent it")
    action to_sender(@brief("PacketType that the frame leaves as") PacketType type) {
        hdr.catchment.type = type;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
        meta.route = Route.JOB;
    }
    @brief("to the parent switch, as of one worker")
    action to_parent() {
        hdr.catchment.wid = meta.job.up_wid;
        standard_metadata.egress_spec = meta.job.up_port;
        meta.route = Route.JOB;
    }
    @brief("a copy to each worker, unchanged")
    action pass_on() {
        standard_metadata.mcast_grp = meta.job.group;
        meta.route = Route.JOB;
    }
    @brief("nothing leaves")
    action absorb() {
        mark_to_drop(standard_metadata);
    }
    @brief("what leaves, as what type, and to whom")
    table answers {
        key = {
            meta.event : exact @name("event") @brief("what came of the frame: Event of the program");
            meta.job.mode : ternary @name("mode") @brief("Mode of the stream on this switch");
            hdr.catchment.type : ternary @name("type") @brief("PacketType of the frame");
            meta.slot.again : ternary @name("again") @brief("1: this worker's vector was in already");
        }
        actions = { to_workers; to_sender; to_parent; pass_on; absorb; }
        const default_action = absorb();
        const entries = {
            // event          mode            type            again
            (Event.FULL, Mode.ALLREDUCE, PacketType.PA, 0) : to_workers(PacketType.FA);
            (Event.FULL, Mode.ALLREDUCE, PacketType.PA, 1) : to_sender(PacketType.FA);
            (Event.FULL, Mode.ALLREDUCE, PacketType.ACK, 0) : to_workers(PacketType.CNF);
            (Event.FULL, Mode.ALLREDUCE, PacketType.ACK, 1) : to_sender(PacketType.CNF);
            (Event.FULL, Mode.LEAF, _, _) : to_parent();
            (Event.CONFIRMED, _, _, _) : to_sender(PacketType.CNF);
            (Event.RELAYED, _, _, _) : pass_on();
        }
    }
    apply {
        // The switch's word, not the packet's; slots have no window to speak of.
        hdr.catchment.wid = meta.job.wid;
        hdr.catchment.flags = hdr.catchment.flags & ~FLAG_ACKV;
        hdr.catchment.ack = 0;
        hdr.catchment.credit = 0;
        // A leaf lacks the oldest sum that any of its workers lacks, once all have said which that is.
        if (meta.event == Event.FULL && meta.job.mode == Mode.LEAF && meta.hb.complete == 1) {
            hdr.catchment.flags = hdr.catchment.flags | FLAG_ACKV;
            hdr.catchment.ack = meta.hb.min_ack;
        }
        answers.apply();
    }
}

#endif  // CATCHMENT_ANSWERS_P4
