// Ports of a translated type in controller headers, a digest and a register: clients give and get 32 bits, the program
// has 9.
//
// What comes in at a port goes to the controller, and is learned.
#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("example.com/port", 32)
type bit<9> port_id_t;

header ethernet_h {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

@controller_header("packet_in")
header packet_in_h {
    port_id_t ingress_port;
    @hidden
    bit<3> spare;
    bit<4> reason;
}

@controller_header("packet_out")
header packet_out_h {
    port_id_t egress_port;
    @hidden
    bit<7> padding;
}

struct headers_t {
    packet_out_h packet_out;
    packet_in_h  packet_in;
    ethernet_h   ethernet;
}

struct metadata_t {
}

struct learned_t {
    bit<48>   src;
    port_id_t port;
}

#define CPU_PORT 510

parser TranslatedParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: from_controller;
            default: ethernet;
        }
    }
    state from_controller {
        packet.extract(hdr.packet_out);
        transition ethernet;
    }
    state ethernet {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control NoVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control TranslatedIngress(inout headers_t hdr, inout metadata_t meta,
                          inout standard_metadata_t standard_metadata) {
    register<port_id_t>(4) last_port;

    apply {
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = (bit<9>)hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = (port_id_t)standard_metadata.ingress_port;
            hdr.packet_in.spare = 7;
            hdr.packet_in.reason = 5;
            standard_metadata.egress_spec = CPU_PORT;
            last_port.write(0, (port_id_t)standard_metadata.ingress_port);
            digest<learned_t>(1, { hdr.ethernet.src, (port_id_t)standard_metadata.ingress_port });
        }
    }
}

control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control NoUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control TranslatedDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
    }
}

V1Switch(TranslatedParser(), NoVerify(), TranslatedIngress(), NoEgress(), NoUpdate(), TranslatedDeparser()) main;
