// A frame writes its value into a cell of two registers. Between them it may wait for its death, in a hook.
#include <core.p4>
#include <v1model.p4>

header frame_h {
    bit<32> value;
    bit<8>  cell;
    bit<8>  tells;
}

struct headers_t {
    frame_h frame;
}

struct metadata_t {
}

parser FrameParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.frame);
        transition accept;
    }
}

control NoVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control PairsIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    register<bit<32>>(256) first;
    register<bit<32>>(256) second;
    direct_counter(CounterType.packets) seen;

    action forward(bit<9> port) {
        standard_metadata.egress_spec = port;
        seen.count();
    }
    table route {
        key = { standard_metadata.ingress_port: exact; }
        actions = { forward; }
        counters = seen;
        size = 1024;
    }

    apply {
        route.apply();
        first.write((bit<32>)hdr.frame.cell, hdr.frame.value);
        if (hdr.frame.tells == 1) {
            log_msg("between");
        }
        second.write((bit<32>)hdr.frame.cell, hdr.frame.value);
    }
}

control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply { }
}

control NoUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control FrameDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.frame);
    }
}

V1Switch(FrameParser(), NoVerify(), PairsIngress(), NoEgress(), NoUpdate(), FrameDeparser()) main;
