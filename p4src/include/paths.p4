// Which types a port may send, by the member on it and by the job's mode.
#ifndef CATCHMENT_PATHS_P4
#define CATCHMENT_PATHS_P4

control Paths(in headers_t hdr, inout metadata_t meta) {
    action aggregate(bit<1> merge) {
        meta.path = Path.AGGREGATE;
        meta.merge = merge;
    }
    action heartbeat() {
        meta.path = Path.HEARTBEAT;
        meta.merge = 1;
    }
    action relay() {
        meta.path = Path.RELAY;
        meta.event = Event.RELAYED;
    }
    action wrong_direction() {
        meta.drop = DropReason.WRONG_DIRECTION;
    }
    table paths {
        key = {
            meta.job.from_root : exact @name("from_root");
            meta.job.mode : exact @name("mode");
            hdr.catchment.type : exact @name("type");
        }
        actions = { aggregate; heartbeat; relay; wrong_direction; }
        const default_action = wrong_direction();
        const entries = {
            // root?  mode            type
            (0, Mode.REDUCE, PacketType.PA) : aggregate(0);
            (0, Mode.ALLREDUCE, PacketType.PA) : aggregate(1);
            (0, Mode.LEAF, PacketType.PA) : aggregate(1);
            (0, Mode.BCAST, PacketType.HB) : heartbeat();
            (0, Mode.ALLREDUCE, PacketType.HB) : heartbeat();
            (0, Mode.LEAF, PacketType.HB) : heartbeat();
            (1, Mode.REDUCE, PacketType.HB) : relay();
            (1, Mode.BCAST, PacketType.PARAM) : relay();
            (1, Mode.LEAF, PacketType.PARAM) : relay();
            (1, Mode.LEAF, PacketType.FA) : relay();
            (1, Mode.LEAF, PacketType.MH) : relay();
        }
    }
    apply {
        paths.apply();
    }
}

#endif  // CATCHMENT_PATHS_P4
