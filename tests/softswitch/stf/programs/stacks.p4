// Header stacks: next, last, lastIndex, indices known and not, push_front, pop_front, size; header unions.
#include <core.p4>
#include <v1model.p4>

header label_h { bit<7> value; bit<1> bottom; }
header ops_h { bit<8> op; bit<8> index; }
header short_h { bit<8> kind; bit<8> x; }
header long_h { bit<8> kind; bit<16> x; }
header_union either_u { short_h small; long_h big; }
struct headers_t { ops_h ops; label_h[4] labels; either_u either; either_u[2] more; }
struct meta_t { bit<8> depth; bit<7> bottom_value; }
#include "include/pipeline.p4"

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.ops);
        transition label;
    }
    state label {
        packet.extract(hdr.labels.next);
        meta.depth = (bit<8>) hdr.labels.lastIndex + 1;
        transition select(hdr.labels.last.bottom) {
            0: label;
            1: bottom;
        }
    }
    state bottom {
        meta.bottom_value = hdr.labels.last.value;
        transition select(packet.lookahead<bit<8>>()) {
            0x51: small;
            0x52: big;
            0x53: list;
            default: accept;
        }
    }
    state small { packet.extract(hdr.either.small); transition accept; }
    state big { packet.extract(hdr.either.big); transition accept; }
    state list {
        packet.advance(8);
        packet.extract(hdr.more.next.small);
        packet.extract(hdr.more.next.big);
        transition accept;
    }
}

control Work(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        if (sm.parser_error == error.StackOutOfBounds) {
            sm.egress_spec = 2;
        }
        switch (hdr.ops.op) {
            1: { hdr.labels.push_front(1); hdr.labels[0].setValid(); hdr.labels[0].value = 0x7F; }
            2: { hdr.labels.pop_front(1); }
            3: { hdr.labels[hdr.ops.index].value = 0x11; }
            4: { hdr.ops.index = (bit<8>) hdr.labels[hdr.ops.index].value; }
            5: { hdr.labels.push_front(3); }
            6: { hdr.labels.pop_front(4); }
            7: { hdr.ops.index = (bit<8>) hdr.labels.size; }
            8: { hdr.labels[3] = hdr.labels[0]; hdr.labels[0].setInvalid(); }
            9: { hdr.ops.index = meta.depth; hdr.ops.op = (bit<8>) meta.bottom_value; }
            10: { hdr.either.big.setValid(); hdr.either.big.kind = 0x52; hdr.either.big.x = 0xABCD; }
            11: { if (hdr.either.isValid()) { hdr.ops.index = 0xFE; } if (hdr.either.small.isValid()) { hdr.ops.op = 0xFD; } }
        }
    }
}

V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoUpdate(), Emit()) main;
