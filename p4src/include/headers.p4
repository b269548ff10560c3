// Everything in front of a vector.
#ifndef CATCHMENT_HEADERS_P4
#define CATCHMENT_HEADERS_P4

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<16> ETHERTYPE_ARP = 0x0806;
const bit<8> PROTOCOL_UDP = 17;
const bit<16> ETHERNET_BYTES = 14;

header ethernet_h {
    mac_t dst;
    mac_t src;
    bit<16> ether_type;
}

header arp_h {
    bit<16> hardware_type;
    bit<16> protocol_type;
    bit<8> hardware_len;
    bit<8> protocol_len;
    bit<16> operation;
    mac_t sender_mac;
    ip_t sender_ip;
    mac_t target_mac;
    ip_t target_ip;
}

header ipv4_h {
    bit<4> version;
    bit<4> ihl;
    bit<8> diffserv;
    bit<16> total_len;
    bit<16> identification;
    bit<1> reserved;
    bit<1> dont_fragment;
    bit<1> more_fragments;
    bit<13> fragment_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    ip_t src;
    ip_t dst;
}

header udp_h {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

#ifdef TAGS
header tag_h {
    bit<64> tag;
}
#endif

struct headers_t {
    ethernet_h ethernet;
    arp_h arp;
    ipv4_h ipv4;
    udp_h udp;
    catchment_h catchment;
    lanes_h lanes;
#ifdef TAGS
    tag_h tag;
#endif
}

#endif  // CATCHMENT_HEADERS_P4
