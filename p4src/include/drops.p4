// The only place where a frame is lost: counted under the reason that a control has left in `meta.drop`.
#ifndef CATCHMENT_DROPS_P4
#define CATCHMENT_DROPS_P4

// Index: DropReason.  One instance for both pipelines, so that an operator reads one table.
counter(32, CounterType.packets) drops;

// Index: ingress port ++ DropReason.  Frames that the host on that port may not send: shows which host is to blame.
counter(16384, CounterType.packets) refused;

control Drops(in metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (meta.drop != DropReason.NONE) {
            bit<8> reason = (bit<8>)meta.drop;
            drops.count((bit<32>)reason);
            if (meta.drop == DropReason.UNKNOWN_JOB || meta.drop == DropReason.WRONG_DIRECTION
                || meta.drop == DropReason.FORGED_ARP || meta.drop == DropReason.OTHER_SWITCH
                || meta.drop == DropReason.FORGED_SOURCE || meta.drop == DropReason.WRONG_UDP_PORT
                || meta.drop == DropReason.BEYOND_WINDOW || meta.drop == DropReason.NOT_PACKED
                || meta.drop == DropReason.BAD_TAG) {
                refused.count((bit<32>)(standard_metadata.ingress_port ++ reason[4:0]));
            }
            mark_to_drop(standard_metadata);
        }
    }
}

#endif  // CATCHMENT_DROPS_P4
