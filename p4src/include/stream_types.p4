// What luwu.p4 takes beside vectors: parameters and heartbeats.
#ifndef CATCHMENT_STREAM_TYPES_P4
#define CATCHMENT_STREAM_TYPES_P4

control StreamTypes(in headers_t hdr, inout metadata_t meta) {
    apply {
        if (hdr.catchment.type == PacketType.PARAM) {
            if ((bit<32>)hdr.udp.length
                != (bit<32>)(EMPTY_BYTES + TAIL_BYTES(hdr)) + (bit<32>)hdr.catchment.lanes) {
                meta.drop = DropReason.BAD_LENGTH;
            }
        } else if (hdr.catchment.type == PacketType.HB || hdr.catchment.type == PacketType.MH) {
            if (hdr.catchment.lanes != 0 || hdr.udp.length != EMPTY_BYTES + TAIL_BYTES(hdr)) {
                meta.drop = DropReason.BAD_LENGTH;
            } else if ((hdr.catchment.flags & FLAG_ACKV) == 0) {
                meta.drop = DropReason.BAD_FLAGS;
            }
        } else if (hdr.catchment.type != PacketType.PA && hdr.catchment.type != PacketType.FA) {
            meta.drop = DropReason.BAD_TYPE;
        }
    }
}

#endif  // CATCHMENT_STREAM_TYPES_P4
