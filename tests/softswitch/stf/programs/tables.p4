// Match kinds, const entries, priorities, defaults, keys of invalid headers, of many fields and wide ones.
#include <core.p4>
#include <v1model.p4>

header k_h { bit<8> which; bit<32> addr; bit<16> port; bit<8> flags; bit<128> wide; }
header r_h { bit<8> result; }
header x_h { bit<8> x; }
struct headers_t { k_h k; r_h r; x_h extra; }
struct meta_t { }
#include "include/pipeline.p4"

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.k);
        packet.extract(hdr.r);
        transition select(hdr.k.flags) { 0xF0: extra; default: accept; }
    }
    state extra { packet.extract(hdr.extra); transition accept; }
}

control Work(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action set(bit<8> value) { hdr.r.result = value; }
    action drop() { mark_to_drop(sm); }
    table exact_t {
        key = { hdr.k.addr : exact; hdr.k.port : exact; }
        actions = { set; drop; NoAction; }
        default_action = set(0xE0);
        size = 64;
    }
    table lpm_t {
        key = { hdr.k.addr : lpm; }
        actions = { set; drop; }
        default_action = set(0xE1);
    }
    table ternary_t {
        key = { hdr.k.addr : ternary; hdr.k.flags : ternary @name("flags"); }
        actions = { set; drop; }
        default_action = set(0xE2);
    }
    table range_t {
        key = { hdr.k.port : range; hdr.k.flags : exact; }
        actions = { set; drop; }
        default_action = set(0xE3);
    }
    table const_t {
        key = { hdr.k.addr : ternary; hdr.k.port : range; }
        actions = { set; drop; }
        const default_action = set(0xE4);
        const entries = {
            (0x0A000000 &&& 0xFF000000, 10 .. 20) : set(0x41);
            (0x0A010000 &&& 0xFFFF0000, _) : set(0x42);
            (0x0A010101, 30) : set(0x43);
            (_, 99) : drop();
        }
    }
    table priority_t {
        key = { hdr.k.addr : ternary; }
        actions = { set; drop; }
        entries = {
            priority = 20 : 0x0B000000 &&& 0xFF000000 : set(0x51);
            priority = 10 : 0x0B0C0000 &&& 0xFFFF0000 : set(0x52);
        }
        const default_action = set(0xE5);
    }
    table wide_t {
        key = { hdr.k.wide : exact; }
        actions = { set; }
        default_action = set(0xE6);
    }
    table optional_t {
        key = { hdr.k.port : optional; hdr.k.flags : optional; }
        actions = { set; }
        default_action = set(0xE7);
    }
    table valid_t {
        key = { hdr.extra.isValid() : exact; hdr.extra.x : ternary; }
        actions = { set; }
        default_action = set(0xE8);
    }
    table mixed_t {
        key = { hdr.k.addr : lpm; hdr.k.port : exact; hdr.k.flags : ternary; }
        actions = { set; }
        default_action = set(0xE9);
    }
    apply {
        sm.egress_spec = 1;
        switch (hdr.k.which) {
            0: { exact_t.apply(); }
            1: { lpm_t.apply(); }
            2: { ternary_t.apply(); }
            3: { range_t.apply(); }
            4: { const_t.apply(); }
            5: { priority_t.apply(); }
            6: { wide_t.apply(); }
            7: { optional_t.apply(); }
            8: { valid_t.apply(); }
            9: { mixed_t.apply(); }
        }
    }
}

V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoUpdate(), Emit()) main;
