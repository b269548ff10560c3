// Registers, indirect and direct counters, meters.
#include <core.p4>
#include <v1model.p4>

header s_h { bit<8> op; bit<32> index; bit<64> value; int<16> sign; bit<8> color; }
struct headers_t { s_h s; }
struct meta_t { }
#include "include/pipeline.p4"

register<bit<64>>(8) shared;

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.s); transition accept; }
}

control Work(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    register<int<16>>(4) signs;
    register<bit<1>>(4) bits;
    register<bit<100>>(4) wide;
    counter(4, CounterType.packets_and_bytes) seen;
    counter(2, CounterType.bytes) sizes;
    meter(4, MeterType.packets) limit;
    direct_counter(CounterType.packets_and_bytes) hits;
    action mark(bit<8> color) { hdr.s.color = color; }
    table counted {
        key = { hdr.s.index : exact; }
        actions = { mark; NoAction; }
        counters = hits;
        default_action = NoAction();
    }
    apply {
        sm.egress_spec = 1;
        switch (hdr.s.op) {
            1: { shared.write(hdr.s.index, hdr.s.value); }
            2: { shared.read(hdr.s.value, hdr.s.index); }
            3: { signs.read(hdr.s.sign, hdr.s.index); signs.write(hdr.s.index, hdr.s.sign - 1); }
            4: { seen.count(hdr.s.index); sizes.count(hdr.s.index); }
            5: { limit.execute_meter(hdr.s.index, hdr.s.color); }
            6: { counted.apply(); }
            7: {
                bit<1> one;
                bits.read(one, hdr.s.index);
                hdr.s.color = (bit<8>) one;
                bits.write(hdr.s.index, ~one);
            }
            8: {
                bit<100> w;
                wide.read(w, 1);
                w = (w << 64) + (bit<100>) hdr.s.value + 1;
                wide.write(1, w);
                hdr.s.value = w[99:36];
            }
        }
    }
}

V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoUpdate(), Emit()) main;
