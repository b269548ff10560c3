// Tables whose entries are written in the program: some const, with the priorities of either order.
#include <core.p4>
#include <v1model.p4>

header key_h {
    bit<8> key;
    bit<8> largest;
    bit<8> smallest;
}
struct headers_t { key_h key; }
struct meta_t { }

parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.key); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    direct_counter(CounterType.packets) hits;
    action set_largest(bit<8> value) { hdr.key.largest = value; hits.count(); }
    action set_smallest(bit<8> value) { hdr.key.smallest = value; }
    table largest_t {
        key = { hdr.key.key : ternary; }
        actions = { set_largest; NoAction; }
        default_action = NoAction();
        counters = hits;
        priority_delta = 10;
        entries = {
            const priority = 100: 1 &&& 1 : set_largest(1);
            2 &&& 2 : set_largest(2);
            const 4 &&& 4 : set_largest(3);
        }
    }
    table smallest_t {
        key = { hdr.key.key : ternary; }
        actions = { set_smallest; NoAction; }
        default_action = NoAction();
        largest_priority_wins = false;
        entries = {
            const priority = 10: 1 &&& 1 : set_smallest(1);
            priority = 20: 2 &&& 2 : set_smallest(2);
        }
    }
    apply { sm.egress_spec = 1; largest_t.apply(); smallest_t.apply(); }
}
control MyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.key); } }
V1Switch(P(), V(), MyIngress(), MyEgress(), C(), D()) main;
