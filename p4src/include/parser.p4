// A frame that stops too early, or that is not ours, keeps the rest as payload and is judged in ingress.
#ifndef CATCHMENT_PARSER_P4
#define CATCHMENT_PARSER_P4

parser CatchmentParser(packet_in packet,
                       out headers_t hdr,
                       inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            ETHERTYPE_ARP: parse_arp;
            default: accept;
        }
    }

    state parse_arp {
        packet.extract(hdr.arp);
        transition accept;
    }

    // UDP follows only a header without options, and only in a first fragment.
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (4, 5, 0, PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }

    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            CATCHMENT_UDP_PORT: parse_catchment;
            default: accept;
        }
    }

    // Only a vector that will be added is taken apart; parameters and sums that pass are payload.
    state parse_catchment {
        packet.extract(hdr.catchment);
        transition select(hdr.catchment.type, hdr.catchment.lanes) {
            (PacketType.PA, LANES): parse_lanes;
#ifdef TAGS
            (PacketType.HB, _): parse_tail;
            (PacketType.MH, _): parse_tail;
            (PacketType.ACK, _): parse_tail;
            (PacketType.CNF, _): parse_tail;
#endif
            default: accept;
        }
    }

    state parse_lanes {
        packet.extract(hdr.lanes);
#ifdef TAGS
        transition parse_tail;
    }

    state parse_tail {
        transition select(hdr.catchment.version) {
            CATCHMENT_TAGGED_VERSION: parse_tag;
            default: accept;
        }
    }

    state parse_tag {
        packet.extract(hdr.tag);
        transition accept;
#else
        transition accept;
#endif
    }
}

control CatchmentDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.arp);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.catchment);
        packet.emit(hdr.lanes);
#ifdef TAGS
        packet.emit(hdr.tag);
#endif
    }
}

#endif  // CATCHMENT_PARSER_P4
