// What leaves, as what type, and to whom.
#ifndef CATCHMENT_EMISSIONS_P4
#define CATCHMENT_EMISSIONS_P4

control Emissions(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
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
    @brief("to the root")
    action to_root(@brief("PacketType that the frame leaves as") PacketType type) {
        hdr.catchment.type = type;
        standard_metadata.egress_spec = meta.job.up_port;
        meta.route = Route.JOB;
    }
    @brief("to the parent switch, as of one worker")
    action to_parent(@brief("PacketType that the frame leaves as") PacketType type) {
        hdr.catchment.type = type;
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
    table emissions {
        key = {
            meta.event : exact @name("event") @brief("what came of the frame: Event of the program");
            meta.job.mode : exact @name("mode") @brief("Mode of the stream on this switch");
            meta.slot.again : ternary @name("again") @brief("1: this worker's vector was in already");
        }
        actions = { to_workers; to_sender; to_root; to_parent; pass_on; absorb; }
        const default_action = absorb();
        const entries = {
            // event          mode            again
            (Event.FULL, Mode.REDUCE, _) : to_root(PacketType.FA);
            (Event.FULL, Mode.ALLREDUCE, 0) : to_workers(PacketType.FA);
            (Event.FULL, Mode.ALLREDUCE, 1) : to_sender(PacketType.FA);
            (Event.FULL, Mode.LEAF, _) : to_parent(PacketType.PA);
            (Event.MERGED, Mode.BCAST, _) : to_root(PacketType.MH);
            (Event.MERGED, Mode.ALLREDUCE, _) : to_workers(PacketType.MH);
            (Event.MERGED, Mode.LEAF, _) : to_parent(PacketType.HB);
            (Event.RELAYED, Mode.REDUCE, _) : to_workers(PacketType.MH);
            (Event.RELAYED, Mode.BCAST, _) : pass_on();
            (Event.RELAYED, Mode.LEAF, _) : pass_on();
        }
    }
    apply {
        // The switch's word, not the packet's.
        hdr.catchment.wid = meta.job.wid;
        if (meta.path != Path.RELAY) {
            if (meta.hb.complete == 1) {
                hdr.catchment.flags = hdr.catchment.flags | FLAG_ACKV;
                hdr.catchment.ack = meta.hb.min_ack;
                hdr.catchment.credit = meta.hb.min_credit;
            } else {
                hdr.catchment.flags = hdr.catchment.flags & ~FLAG_ACKV;
                hdr.catchment.ack = 0;
                hdr.catchment.credit = 0;
            }
        }
        emissions.apply();
    }
}

#endif  // CATCHMENT_EMISSIONS_P4
