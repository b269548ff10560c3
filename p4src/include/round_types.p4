// What p4sgd.p4 takes beside vectors: acknowledgements and confirmations, and which member may send which.
#ifndef CATCHMENT_ROUND_TYPES_P4
#define CATCHMENT_ROUND_TYPES_P4

control RoundTypes(in headers_t hdr, inout metadata_t meta) {
    apply {
        if (hdr.catchment.type == PacketType.ACK || hdr.catchment.type == PacketType.CNF) {
            if (hdr.catchment.lanes != 0 || hdr.udp.length != EMPTY_BYTES + TAIL_BYTES(hdr)) {
                meta.drop = DropReason.BAD_LENGTH;
            }
        } else if (hdr.catchment.type != PacketType.PA && hdr.catchment.type != PacketType.FA) {
            meta.drop = DropReason.BAD_TYPE;
        }
    }
}

// Workers send vectors and acknowledgements; sums and confirmations come from the switch, or from its parent.
control RoundPaths(in headers_t hdr, inout metadata_t meta) {
    apply {
        if (meta.job.from_root == 1) {
            if (meta.job.mode == Mode.LEAF
                && (hdr.catchment.type == PacketType.FA || hdr.catchment.type == PacketType.CNF)) {
                meta.event = Event.RELAYED;
            } else {
                meta.drop = DropReason.WRONG_DIRECTION;
            }
        } else if ((meta.job.mode != Mode.ALLREDUCE && meta.job.mode != Mode.LEAF)
                   || (hdr.catchment.type != PacketType.PA && hdr.catchment.type != PacketType.ACK)) {
            meta.drop = DropReason.WRONG_DIRECTION;
        }
    }
}

#endif  // CATCHMENT_ROUND_TYPES_P4
