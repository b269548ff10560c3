// Counts each frame in three registers, and sends it back if a table says so, for frames that come during a commit.
#include <core.p4>
#include <v1model.p4>

header value_h {
    bit<32> value;
}

struct headers_t {
    value_h value;
}

struct metadata_t {}

parser ValueParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.value);
        transition accept;
    }
}

control NoVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control CountingIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<32>>(1) first;
    register<bit<32>>(20000) middle;
    register<bit<32>>(1) last;

    action back() {
        standard.egress_spec = standard.ingress_port;
    }

    table route_t {
        key = { hdr.value.value: exact; }
        actions = { back; NoAction; }
        size = 1024;
    }

    apply {
        bit<32> count;
        first.read(count, 0);
        first.write(0, count + 1);
        middle.read(count, 19999);
        middle.write(19999, count + 1);
        last.read(count, 0);
        last.write(0, count + 1);
        if (!route_t.apply().hit) {
            mark_to_drop(standard);
        }
    }
}

control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control NoUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control ValueDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.value);
    }
}

V1Switch(ValueParser(), NoVerify(), CountingIngress(), NoEgress(), NoUpdate(), ValueDeparser()) main;
