/* Externs of the program's own: a function, and an object with a state. */
#include <core.p4>
#include <v1model.p4>

extern bit<16> fold(in bit<32> value, inout bit<8> rounds, out bool odd);
extern Seen {
    Seen(bit<32> size, string name);
    bool add(in bit<32> key);
    void most(out bit<32> key, in int<8> offset);
}

header probe_h {
    bit<32> key;
    bit<8> rounds;
    bit<16> folded;
    bit<8> flags;
    bit<32> most;
}
struct headers_t { probe_h probe; }
struct meta_t { }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.probe); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Seen(4, "first") first;
    Seen(4, "second") second;
    bool odd;
    apply {
        sm.egress_spec = 1;
        hdr.probe.folded = fold(hdr.probe.key, hdr.probe.rounds, odd);
        if (odd) { hdr.probe.flags[0:0] = 1; }
        if (first.add(hdr.probe.key)) { hdr.probe.flags[1:1] = 1; }
        if (hdr.probe.key < 100 && second.add(hdr.probe.key)) { hdr.probe.flags[2:2] = 1; }
        second.most(hdr.probe.most, -8s1);
    }
}
control MyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.probe); } }
V1Switch(P(), V(), MyIngress(), MyEgress(), C(), D()) main;
