// What leaves p4sgd.p4: a sum or a confirmation, to all workers when it is new, to the sender alone when it asks again.
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
    @brief("nothing leaves")
    action absorb() {
        mark_to_drop(standard_metadata);
    }
    @brief("what leaves, as what type, and to whom")
    table answers {
        key = {
            meta.event : exact @name("event") @brief("what came of the frame: Event of the program");
            hdr.catchment.type : exact @name("type") @brief("PacketType of the frame");
            meta.slot.again : exact @name("again") @brief("1: this worker's vector was in already");
        }
        actions = { to_workers; to_sender; absorb; }
        const default_action = absorb();
        const entries = {
            // event     type            again
            (Event.FULL, PacketType.PA, 0) : to_workers(PacketType.FA);
            (Event.FULL, PacketType.PA, 1) : to_sender(PacketType.FA);
            (Event.FULL, PacketType.ACK, 0) : to_workers(PacketType.CNF);
            (Event.FULL, PacketType.ACK, 1) : to_sender(PacketType.CNF);
        }
    }
    apply {
        // The switch's word, not the packet's; slots have no window to speak of.
        hdr.catchment.wid = meta.job.wid;
        hdr.catchment.flags = hdr.catchment.flags & ~FLAG_ACKV;
        hdr.catchment.ack = 0;
        hdr.catchment.credit = 0;
        answers.apply();
    }
}

#endif  // CATCHMENT_ANSWERS_P4
