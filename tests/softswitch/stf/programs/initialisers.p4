// Structure initialisers, lists, `...`, comparison of structs, headers and stacks; varbits compared and copied.
#include <core.p4>
#include <v1model.p4>

header op_h { bit<8> op; bit<8> result; }
header data_h { bit<8> a; bit<16> b; bit<8> c; }
header vary_h { bit<8> length; varbit<32> data; }
struct headers_t { op_h op; data_h[2] pair; vary_h left; vary_h right; data_h made; }
struct point_t { bit<8> x; bit<8> y; }
struct box_t { point_t low; point_t high; bool used; }
struct meta_t { box_t box; box_t other; }
#include "include/pipeline.p4"

const point_t ORIGIN = { 1, 2 };

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.op);
        packet.extract(hdr.pair.next);
        packet.extract(hdr.pair.next);
        packet.extract(hdr.left, ((bit<32>) packet.lookahead<bit<8>>()) << 3);
        packet.extract(hdr.right, ((bit<32>) packet.lookahead<bit<8>>()) << 3);
        transition accept;
    }
}

box_t corner(in bit<8> at) {
    return { low = { x = at, y = at }, high = { x = at + 1, y = at + 1 }, used = true };
}

control Work(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        meta.box = { low = ORIGIN, ... };
        switch (hdr.op.op) {
            1: { hdr.op.result = meta.box.low.x ++ meta.box.high.y == 16w0x0100 ? 8w1 : 8w0; }
            2: {
                if (hdr.pair[0].isValid()) { meta.other = corner(hdr.pair[0].a); }
                hdr.op.result = meta.other.high.y;
            }
            3: { meta.other = { { 1, 2 }, { 0, 0 }, false }; hdr.op.result = meta.other == meta.box ? 8w0x33 : 8w0; }
            4: { hdr.op.result = hdr.pair[0] == hdr.pair[1] ? 8w0x44 : 8w4; }
            5: {  // a field of an invalid header has no defined value
                bool there = hdr.left.isValid() && hdr.right.isValid();
                hdr.op.result = there && hdr.left.data == hdr.right.data ? 8w0x55 : 8w5;
            }
            6: { hdr.made = { a = 0x61, b = 0x6263, c = 0x64 }; }
            7: { hdr.made = hdr.pair[1]; hdr.pair[1] = hdr.pair[0]; hdr.pair[0] = hdr.made; hdr.made.setInvalid(); }
            8: { hdr.left = hdr.right; }
            9: { hdr.pair[1].setInvalid(); data_h[2] kept = hdr.pair; hdr.op.result = kept == hdr.pair ? 8w0x99 : 8w9; }
            10: { hdr.made = (data_h) {#}; hdr.op.result = hdr.made.isValid() ? 8w1 : 8w0xAA; }
        }
    }
}

V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoUpdate(), Emit()) main;
