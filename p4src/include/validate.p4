// Whether a frame for the switch is well formed; the first thing that is wrong is what gets counted.  Vectors are the
// same in every program; each program looks at its other types itself.
#ifndef CATCHMENT_VALIDATE_P4
#define CATCHMENT_VALIDATE_P4

// UDP lengths without and with a vector.
const bit<16> EMPTY_BYTES = UDP_HEADER_BYTES + CATCHMENT_HEADER_BYTES;
const bit<16> FULL_BYTES = EMPTY_BYTES + LANES * CATCHMENT_LANE_BYTES;

control Validate(in headers_t hdr, inout metadata_t meta, in standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.parser_error != error.NoError) {
            meta.drop = DropReason.PARSE_ERROR;
        } else if (!hdr.catchment.isValid() || hdr.ipv4.more_fragments == 1
                   || standard_metadata.checksum_error == 1) {
            meta.drop = DropReason.BAD_IPV4;
        } else if (hdr.ipv4.total_len != hdr.udp.length + IPV4_HEADER_BYTES
                   || standard_metadata.packet_length != (bit<32>)hdr.ipv4.total_len + (bit<32>)ETHERNET_BYTES) {
            meta.drop = DropReason.BAD_LENGTH;
        } else if (!IS_SPOKEN(hdr.catchment.version)) {
            meta.drop = DropReason.BAD_VERSION;
        } else if ((hdr.catchment.flags & ~FLAG_ALL) != 0) {
            meta.drop = DropReason.BAD_FLAGS;
        } else if (hdr.catchment.type == PacketType.PA || hdr.catchment.type == PacketType.FA) {
            if (hdr.catchment.lanes != LANES) {
                meta.drop = DropReason.BAD_LANES;
            } else if (hdr.udp.length != FULL_BYTES + TAIL_BYTES(hdr)) {
                meta.drop = DropReason.BAD_LENGTH;
            }
        } else if ((hdr.catchment.flags & (FLAG_PACKED | FLAG_MIXED)) != 0) {
            meta.drop = DropReason.BAD_FLAGS;
        }
    }
}

#endif  // CATCHMENT_VALIDATE_P4
