// What the language leaves open, as BMv2 has it: fields of invalid headers, variables without a
// value; and random() of one value, log_msg, assert and digest, which leave no trace in the packet.
#include <core.p4>
#include <v1model.p4>

header u_h { bit<8> op; bit<8> x; bit<16> y; }
header other_h { bit<8> x; }
struct headers_t { u_h u; other_h other; }
struct note_t { bit<8> op; bit<16> y; }
struct meta_t { bit<8> never; note_t note; }
#include "include/pipeline.p4"

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.u); transition accept; }
}

control Work(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    @name("renamed") @hidden action quiet() { hdr.u.x = 0x3C; }
    @unknown_note[key="value", other=5] @plain("text", 1)
    table annotated {
        actions = { @tableonly quiet; @defaultonly NoAction; }
        key = { hdr.u.x : exact @name("x") @custom("note"); }
        const entries = { 9 : quiet(); }
        const default_action = NoAction();
    }
    apply {
        sm.egress_spec = 1;
        switch (hdr.u.op) {
            1: { hdr.u.x = hdr.other.x; }
            2: { hdr.other.x = 5; hdr.u.x = (bit<8>) (bit<1>) hdr.other.isValid(); }
            3: { hdr.u.x = meta.never; }
            5: { hdr.other.setValid(); hdr.other.x = 0x0E; }
            6: { random(hdr.u.y, 77, 77); }
            7: { log_msg("x is {}, y is {}", { hdr.u.x, hdr.u.y }); assert(hdr.u.op == 7); assume(hdr.u.op != 0); }
            8: { meta.note = { hdr.u.op, hdr.u.y }; digest(1, meta.note); }
            9: { annotated.apply(); }
            10: { hdr.u.setInvalid(); }
            11: { hdr.u.y = (bit<16>) sm.packet_length; hdr.u.x = (bit<8>) sm.ingress_port; }
            12: { random(hdr.u.y, 3, 9); hdr.u.y = (hdr.u.y >= 3 && hdr.u.y <= 9) ? 16w1 : 0; }
        }
    }
}

V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoUpdate(), Emit()) main;
