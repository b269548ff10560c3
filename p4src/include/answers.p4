// What leaves p4sgd.p4: a sum or a confirmation, to all workers when it is new, to the sender alone when it asks again.
#ifndef CATCHMENT_ANSWERS_P4
#define CATCHMENT_ANSWERS_P4

control Answers(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action to_workers(PacketType type) {
        hdr.catchment.type = type;
        standard_metadata.mcast_grp = meta.job.group;
        meta.route = Route.JOB;
    }
    action to_sender(PacketType type) {
        hdr.catchment.type = type;
        standard_metadata.egress_spec = standard_metadata.ingress_port;
        meta.route = Route.JOB;
    }
    action absorb() {
        mark_to_drop(standard_metadata);
    }
    table answers {
        key = {
            meta.event : exact @name("event");
            hdr.catchment.type : exact @name("type");
            meta.slot.again : exact @name("again");
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
