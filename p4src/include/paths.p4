// Which types a port may send, by the member on it and by the job's mode.
#ifndef CATCHMENT_PATHS_P4
#define CATCHMENT_PATHS_P4

control Paths(in headers_t hdr, inout metadata_t meta) {
    @brief("adds the vector to its slot")
    action aggregate(@brief("1: the frame's ack and credit join the heartbeat table") bit<1> merge) {
        meta.path = Path.AGGREGATE;
        meta.merge = merge;
    }
    @brief("merges the frame's ack and credit")
    action heartbeat() {
        meta.path = Path.HEARTBEAT;
        meta.merge = 1;
    }
    @brief("passes the frame on to all workers, without state")
    action relay() {
        meta.path = Path.RELAY;
        meta.event = Event.RELAYED;
    }
    @brief("nobody on this port may send this type in this mode: WRONG_DIRECTION")
    action wrong_direction() {
        meta.drop = DropReason.WRONG_DIRECTION;
    }
    @brief("which types a port may send, by the member on it and by the job's mode")
    table paths {
        key = {
            meta.job.from_root : exact @name("from_root") @brief("1: the root or the parent switch is on the port");
            meta.job.mode : exact @name("mode") @brief("Mode of the stream on this switch");
            hdr.catchment.type : exact @name("type") @brief("PacketType of the frame");
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
