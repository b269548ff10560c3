// Port 1 to port 2 and back, port 3 to port 4 and back; frames of type 0x88b7 go to ports 1 to 4.
#include <core.p4>
#include <v1model.p4>

header ethernet_h {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

struct headers_t {
    ethernet_h ethernet;
}

struct metadata_t {}

parser WiresParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control NoVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control WiresIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (hdr.ethernet.type == 0x88b7) {
            standard.mcast_grp = 1;
        } else {
            standard.egress_spec = ((standard.ingress_port - 1) ^ 1) + 1;
        }
    }
}

control WiresEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control NoCompute(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control WiresDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(WiresParser(), NoVerify(), WiresIngress(), WiresEgress(), NoCompute(), WiresDeparser()) main;
